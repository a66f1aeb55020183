//! Charges the quotas of a namespace for a write (upstream: the admission plugin ResourceQuota).
//!
//! Upstream reserves by a write of its own before that of the object, and what is reserved for a write that fails stays
//! reserved until the next count. Here both are one transaction, so nothing is reserved in vain, and a count never
//! misses a reservation. Writes to one namespace with quotas wait for each other within a gateway; between gateways
//! they conflict and are repeated.

mod usage;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_codec::{Object, envelope, kind_of};
use setpoint_kinds::{Subresource, Target};
use setpoint_model::amounts::{self, Amounts};
use setpoint_model::quantity::Amount;
use setpoint_model::{Revision, quota};
use setpoint_proto::ApiError;
use setpoint_proto::core::{PersistentVolumeClaim, Pod, ResourceQuota, Service};
use setpoint_store::cache::AtLeast;
use setpoint_store::{self as store, Expect, Precondition, keys};
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use super::{Plugin, Reserving};
use crate::admission::reader::decode;
use crate::admission::{Attributes, Reader, Reservation};
use crate::errors;
use crate::request_context::RequestContext;

/// The timeout of waiting for the other writes to the namespace, as upstream's.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Resources that each container must specify if a quota limits them.
const REQUIRED: [&str; 6] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];

/// The plugin, with the locks of namespaces with quotas.
#[derive(Default)]
pub(super) struct Quotas(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl Quotas {
    /// Waits until no other write to the namespace is being charged.
    async fn lock(&self, namespace: &str) -> Result<OwnedMutexGuard<()>, ApiError> {
        let lock = {
            let mut locks = self.0.lock();
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            locks.entry(namespace.to_owned()).or_default().clone()
        };
        let guard = timeout(LOCK_TIMEOUT, lock.lock_owned()).await;
        Ok(guard.map_err(|_| store::Error::Timeout)?)
    }

    /// Computes the charge of a write. Does nothing in a namespace without quotas.
    ///
    /// # Errors
    /// `Forbidden` if a quota would be exceeded, or does not say what is used yet.
    async fn charge(
        &self,
        request: Attributes<'_>,
        new: &dyn Object,
        reader: &dyn Reader,
    ) -> Result<Reservation, ApiError> {
        let target = request.target;
        if read(target, AtLeast::Any, reader).await?.is_empty() {
            return Ok(Reservation::default());
        }
        let guard = self.lock(&target.namespace).await?;
        let quotas = read(target, AtLeast::Newest, reader).await?;
        let changed = charged(quotas, target, request.old, new)
            .map_err(|why| errors::forbidden(target, &why, None))?;
        let changed = changed.into_iter();
        Ok(Reservation {
            preconditions: changed
                .map(|stored| stored.into_precondition(request.context))
                .collect(),
            guards: vec![guard],
            ..Reservation::default()
        })
    }
}

impl Plugin for Quotas {
    /// Charges the quotas of the namespace: they must be unchanged, and get their new `status.used`.
    fn reserve<'a>(
        &'a self,
        request: Attributes<'a>,
        object: &'a mut dyn Object,
        _at: AtLeast,
        reader: &'a dyn Reader,
    ) -> Option<Reserving<'a>> {
        let object = &*object;
        let uses_more = |old| may_use_more(request.target, old, object);
        let is_charged =
            usage::is_counted(request.target.kind) && request.old.is_none_or(uses_more);
        is_charged.then(|| Box::pin(self.charge(request, object, reader)) as Reserving<'a>)
    }
}

/// A quota as it is stored.
struct Stored {
    quota: ResourceQuota,
    revision: Revision,
}

/// Returns whether an update may use more: of a Pod only if it is resized or moves to another scope. Volumes of claims
/// are resized and get another class by writes of the status.
fn may_use_more(target: &Target, old: &dyn Object, new: &dyn Object) -> bool {
    if let (Some(old), Some(new)) = (old.downcast_ref::<Pod>(), new.downcast_ref::<Pod>()) {
        let is_resized = target.subresource == Subresource::Resize;
        return is_resized || quota::is_terminating(old) != quota::is_terminating(new);
    }
    if let (Some(old), Some(new)) = (old.downcast_ref::<Service>(), new.downcast_ref::<Service>()) {
        return old.spec != new.spec;
    }
    let claim = |object: &'_ dyn Object| {
        let claim = object.downcast_ref::<PersistentVolumeClaim>()?;
        let classes = quota::attributes_classes(claim).into_iter();
        let classes: Vec<_> = classes.map(str::to_owned).collect();
        Some((quota::of_claim(claim), classes))
    };
    claim(old) != claim(new)
}

/// Returns the quotas of a namespace. One that cannot be read is not ignored.
async fn read(target: &Target, at: AtLeast, reader: &dyn Reader) -> Result<Vec<Stored>, ApiError> {
    let mut quotas = Vec::new();
    for item in reader.all::<ResourceQuota>(&target.namespace, at).await? {
        let mut quota: ResourceQuota = decode(&item)?;
        quota.metadata.resource_version.clear();
        quotas.push(Stored {
            quota,
            revision: item.revision,
        });
    }
    Ok(quotas)
}

/// Returns the quotas whose `status.used` changes, with the new one.
fn charged(
    mut quotas: Vec<Stored>,
    target: &Target,
    old: Option<&dyn Object>,
    new: &dyn Object,
) -> Result<Vec<Stored>, String> {
    let resource = target.kind.resource();
    let names = |quota: &ResourceQuota| -> BTreeSet<String> {
        let names = quota.status.hard.keys();
        let names = names.filter(|name| quota::tracks(&resource, name));
        names.cloned().collect()
    };
    quotas.retain(|stored| {
        let quota = &stored.quota;
        !names(quota).is_empty() && usage::matches(&quota.spec, new)
    });
    for Stored { quota, .. } in &quotas {
        check_specified(new, &names(quota))
            .map_err(|why| format!("failed quota: {}: {why}", quota.metadata.name))?;
        check_known(quota, &names(quota))?;
    }
    let now = Timestamp::now();
    let used = usage::of(new, now);
    let before = old.map(|old| (old, usage::of(old, now)));
    let mut changed = Vec::new();
    for mut stored in quotas {
        let mut delta = used.clone();
        if let Some((old, before)) = &before
            && usage::matches(&stored.quota.spec, *old)
        {
            subtract(&mut delta, before);
        }
        delta.retain(|name, amount| {
            *amount > Amount::ZERO && stored.quota.status.hard.contains_key(name)
        });
        if !delta.is_empty() {
            add_to(&mut stored.quota, &delta)?;
            changed.push(stored);
        }
    }
    Ok(changed)
}

fn subtract(amounts: &mut Amounts, less: &Amounts) {
    for (name, amount) in amounts {
        *amount = *amount - less.get(name).copied().unwrap_or(Amount::ZERO);
    }
}

/// Adds to what is used.
///
/// # Errors
/// If that would exceed the quota.
fn add_to(quota: &mut ResourceQuota, delta: &Amounts) -> Result<(), String> {
    let hard = amounts::of_list(&quota.status.hard);
    let before = amounts::of_list(&quota.status.used);
    let mut used = before.clone();
    amounts::add(&mut used, delta);
    let exceeded: BTreeSet<_> = delta
        .keys()
        .filter(|name| used.get(*name) > hard.get(*name))
        .collect();
    if !exceeded.is_empty() {
        let list = |amounts: &Amounts| {
            let amounts = amounts.iter().filter(|(name, _)| exceeded.contains(name));
            let parts = amounts.map(|(name, amount)| format!("{name}={}", amount.canonical()));
            parts.collect::<Vec<_>>().join(",")
        };
        return Err(format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            quota.metadata.name,
            list(delta),
            list(&before),
            list(&hard)
        ));
    }
    quota.status.used = amounts::to_list(&used);
    Ok(())
}

/// Checks that each container of a Pod specifies the CPU and memory that a quota limits. Upstream regrets the rule and
/// keeps it; it does not hold for Pods that specify these as a whole.
fn check_specified(object: &dyn Object, limited: &BTreeSet<String>) -> Result<(), String> {
    let Some(pod) = object.downcast_ref::<Pod>() else {
        return Ok(());
    };
    let spec = &pod.spec;
    if spec.resources.as_ref().is_some_and(|own| {
        let names = || own.requests.keys().chain(own.limits.keys());
        names().next().is_some()
    }) {
        return Ok(());
    }
    let mut missing = BTreeMap::<_, BTreeSet<_>>::new();
    for container in spec.containers.iter().chain(&spec.init_containers) {
        let resources = &container.resources;
        let given = quota::of_lists(
            &amounts::of_list(&resources.requests),
            &amounts::of_list(&resources.limits),
        );
        let limited = limited.iter();
        for name in limited.filter(|name| REQUIRED.contains(&name.as_str())) {
            if !given.contains_key(name) {
                let containers = missing.entry(name).or_default();
                containers.insert(container.name.as_str());
            }
        }
    }
    let parts = missing.into_iter().map(|(name, containers)| {
        let containers: Vec<_> = containers.into_iter().collect();
        format!("{name} for: {}", containers.join(","))
    });
    match parts.collect::<Vec<_>>().join("; ") {
        parts if parts.is_empty() => Ok(()),
        parts => Err(format!("must specify {parts}")),
    }
}

/// Checks that the quota says what is used.
fn check_known(quota: &ResourceQuota, limited: &BTreeSet<String>) -> Result<(), String> {
    let status = &quota.status;
    if limited.iter().all(|name| status.used.contains_key(name)) {
        return Ok(());
    }
    let names: Vec<_> = limited.iter().map(String::as_str).collect();
    Err(format!(
        "status unknown for quota: {}, resources: {}",
        quota.metadata.name,
        names.join(",")
    ))
}

impl Stored {
    /// Returns the precondition that the quota is unchanged, which writes the new `status.used`. The watch cache sends
    /// the changes of several quotas in one revision so that none is missed.
    fn into_precondition(self, context: &RequestContext) -> Precondition {
        let kind = kind_of::<ResourceQuota>();
        let key = setpoint_model::Key::of(&self.quota.metadata);
        let cause = context.clone().by("resource-quota").cause();
        let raw = Object::encode(&self.quota);
        let value = envelope::write(&kind.api_version(), &kind.kind, &raw, Some(&cause));
        Precondition {
            key: keys::object(kind, &key),
            expect: Expect::At(self.revision),
            put: Some(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::Container;
    use setpoint_proto::meta::Quantity;

    use super::*;

    fn quota(hard: &[(&str, &str)], used: &[(&str, &str)]) -> Vec<Stored> {
        let list = |amounts: &[(&str, &str)]| {
            let amounts = amounts.iter();
            let entry = |(name, text): &(&str, &str)| ((*name).to_owned(), Quantity::new(*text));
            amounts.map(entry).collect()
        };
        let mut quota = ResourceQuota::default();
        quota.metadata.name = "quota".into();
        quota.status.hard = list(hard);
        quota.status.used = list(used);
        vec![Stored {
            quota,
            revision: Revision::default(),
        }]
    }

    fn pod(cpu: &str) -> Pod {
        let mut container = Container {
            name: "web".into(),
            ..Default::default()
        };
        if !cpu.is_empty() {
            let requests = &mut container.resources.requests;
            requests.insert("cpu".into(), Quantity::new(cpu));
        }
        let mut pod = Pod::default();
        pod.spec.containers.push(container);
        pod
    }

    fn charged_for(quotas: Vec<Stored>, pod: &Pod) -> Result<String, String> {
        let key = setpoint_model::Key::new("production", "web");
        let target = Target::whole(kind_of::<Pod>(), &key);
        let changed = charged(quotas, &target, None, pod)?;
        let used = changed.first().map(|stored| &stored.quota.status.used);
        let used = used.into_iter().flatten();
        let used: Vec<_> = used.map(|(name, used)| format!("{name}={used}")).collect();
        Ok(used.join(","))
    }

    #[test]
    fn a_charge_adds_to_what_is_used_up_to_the_limit() {
        let hard = [("pods", "2"), ("requests.cpu", "1")];
        let charged = |used: &[_], cpu| charged_for(quota(&hard, used), &pod(cpu));
        let used = [("pods", "1"), ("requests.cpu", "500m")];
        assert_eq!(charged(&used, "500m").unwrap(), "pods=2,requests.cpu=1");
        assert_eq!(
            charged(&used, "600m").unwrap_err(),
            "exceeded quota: quota, requested: requests.cpu=600m, used: requests.cpu=500m, limited: requests.cpu=1"
        );
        assert_eq!(
            charged(&used, "").unwrap_err(),
            "failed quota: quota: must specify requests.cpu for: web"
        );
        assert_eq!(
            charged(&[("pods", "0")], "1").unwrap_err(),
            "status unknown for quota: quota, resources: pods,requests.cpu"
        );
    }

    #[test]
    fn a_quota_of_another_scope_is_not_charged() {
        let mut quotas = quota(&[("pods", "0")], &[("pods", "0")]);
        quotas[0].quota.spec.scopes = vec!["Terminating".into()];
        assert_eq!(charged_for(quotas, &pod("")).unwrap(), "");
        let mut quotas = quota(&[("pods", "1")], &[("pods", "0")]);
        quotas[0].quota.spec.scopes = vec!["BestEffort".into()];
        assert_eq!(charged_for(quotas, &pod("")).unwrap(), "pods=1");
    }
}
