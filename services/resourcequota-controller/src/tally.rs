//! The count of one quota: what has to be read for it, and the sum.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use setpoint_model::amounts::{self, Amounts};
use setpoint_model::quantity::Amount;
use setpoint_model::quota;
use setpoint_proto::Resource as _;
use setpoint_proto::core::{PersistentVolumeClaim, Pod, ResourceQuotaSpec, Service};
use setpoint_proto::resource::ResourceClaim;

/// The kinds whose objects use different amounts.
pub(crate) const MEASURED: [&str; 4] = [
    Pod::RESOURCE,
    Service::RESOURCE,
    PersistentVolumeClaim::RESOURCE,
    ResourceClaim::RESOURCE,
];

/// The reads that the count of a quota needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The kinds whose objects have to be counted.
    pub numbers: BTreeSet<String>,
    /// The kinds whose objects have to be read.
    pub objects: BTreeSet<&'static str>,
}

impl Needs {
    /// Returns what a quota needs.
    pub fn of(spec: &ResourceQuotaSpec) -> Self {
        let mut needs = Self::default();
        for name in spec.hard.keys() {
            match number_needed(spec, name) {
                Some(resource) => drop(needs.numbers.insert(resource.to_owned())),
                None => needs.objects.extend(measured_by(name)),
            }
        }
        needs
    }
}

/// Returns the kind whose number is enough; the objects in the scopes of a quota have to be read.
fn number_needed<'n>(spec: &ResourceQuotaSpec, name: &'n str) -> Option<&'n str> {
    let resource = quota::number_of(name)?;
    let scoped = quota::has_scopes(spec) && quota::is_measured(resource);
    (!scoped).then_some(resource)
}

fn measured_by(name: &str) -> impl Iterator<Item = &'static str> {
    let kinds = MEASURED.into_iter();
    kinds.filter(move |resource| quota::tracks(resource, name))
}

/// Returns whether a quota counts objects of a kind.
pub fn concerns(spec: &ResourceQuotaSpec, resource: &str) -> bool {
    let mut names = spec.hard.keys();
    names.any(|name| quota::tracks(resource, name))
}

/// The sum of what a quota counts.
pub struct Tally<'a> {
    spec: &'a ResourceQuotaSpec,
    now: Timestamp,
    counted: Counted,
}

/// The sum over the objects that a quota counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// By the names in the quota; without those that no kind uses.
    pub used: Amounts,
    /// The time at which the next Pod that is being deleted is no longer counted.
    pub changes_at: Option<Timestamp>,
}

impl<'a> Tally<'a> {
    /// Returns an empty count at the moment `now`.
    pub fn new(spec: &'a ResourceQuotaSpec, now: Timestamp) -> Self {
        let names = spec.hard.keys();
        let measured = names.filter(|name| measured_by(name).next().is_some());
        let used = measured.map(|name| (name.clone(), Amount::ZERO)).collect();
        Self {
            spec,
            now,
            counted: Counted {
                used,
                changes_at: None,
            },
        }
    }

    /// Sets the numbers of objects. A quota with scopes counts none of kinds without.
    pub fn numbers(&mut self, numbers: &BTreeMap<String, u64>) {
        for name in self.spec.hard.keys() {
            let resource = number_needed(self.spec, name);
            let Some(number) = resource.and_then(|resource| numbers.get(resource)) else {
                continue;
            };
            let number = match quota::has_scopes(self.spec) {
                true => 0,
                false => i64::try_from(*number).unwrap_or(i64::MAX),
            };
            let amount = Amount::from_value(number);
            self.counted.used.insert(name.clone(), amount);
        }
    }

    /// Adds a Pod, if it is in the scopes.
    pub fn pod(&mut self, pod: &Pod) {
        if !quota::pod_matches(self.spec, pod) {
            return;
        }
        self.add(&quota::of_pod(pod, self.now));
        // Until that moment inclusive it is counted.
        let overdue = quota::overdue_at(pod).filter(|end| *end >= self.now);
        let times = self.counted.changes_at.into_iter().chain(overdue);
        self.counted.changes_at = times.min();
    }

    /// Adds a Service. Services have no scopes.
    pub fn service(&mut self, service: &Service) {
        if !quota::has_scopes(self.spec) {
            self.add(&quota::of_service(service));
        }
    }

    /// Adds a claim, if it is in the scopes.
    pub fn claim(&mut self, claim: &PersistentVolumeClaim) {
        if quota::claim_matches(self.spec, claim) {
            self.add(&quota::of_claim(claim));
        }
    }

    /// Adds a ResourceClaim. They have no scopes.
    pub fn resource_claim(&mut self, claim: &ResourceClaim) {
        if !quota::has_scopes(self.spec) {
            self.add(&quota::of_resource_claim(claim));
        }
    }

    fn add(&mut self, used: &Amounts) {
        let is_limited = |name: &str| {
            self.spec.hard.contains_key(name) && number_needed(self.spec, name).is_none()
        };
        let used = used.iter().filter(|(name, _)| is_limited(name));
        let used = used.map(|(name, amount)| (name.clone(), *amount)).collect();
        amounts::add(&mut self.counted.used, &used);
    }

    /// Returns the sum.
    pub fn counted(self) -> Counted {
        self.counted
    }
}
