//! Charges the quotas of a namespace for a write (upstream: the admission plugin ResourceQuota).
//!
//! Upstream reserves by a write of its own before that of the object, and what is reserved for a write that fails stays
//! reserved until the next count. Here both are one transaction, so nothing is reserved in vain, and a count never misses a
//! reservation. Writes to one namespace with quotas wait for each other within a gateway; between gateways they conflict and
//! are repeated.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use prost::Message as _;
use setpoint_codec::{Object, envelope, kind_of};
use setpoint_model::amounts::{self, Amounts};
use setpoint_model::quantity::Amount;
use setpoint_model::{Revision, quota};
use setpoint_proto::ApiError;
use setpoint_proto::core::{PersistentVolumeClaim, Pod, ResourceQuota, Service};
use setpoint_store::{self as store, Expect, Precondition};
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use super::usage;
use crate::registry::target;
use crate::registry::{AtLeast, Filter, Registry, RequestContext, Subresource, Target, errors};

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

/// The locks of namespaces with quotas.
#[derive(Default)]
pub(crate) struct QuotaLocks(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl QuotaLocks {
    /// Waits until no other write to the namespace is being charged.
    async fn lock(&self, namespace: &str) -> Result<OwnedMutexGuard<()>, ApiError> {
        let lock = {
            let mut locks = self.0.lock();
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            locks.entry(namespace.to_owned()).or_default().clone()
        };
        // Boxed, since a timer would make the future of every create large.
        let guard = Box::pin(timeout(LOCK_TIMEOUT, lock.lock_owned())).await;
        Ok(guard.map_err(|_| store::Error::Timeout)?)
    }
}

/// The charge of a write that has not been made yet.
#[derive(Default)]
pub(crate) struct Charge {
    /// The preconditions of the write: the quotas are unchanged, and get their new `status.used`.
    pub preconditions: Vec<Precondition>,
    /// Held until the write has ended.
    _guard: Option<OwnedMutexGuard<()>>,
}

/// A charge that is being computed.
pub(crate) type Charging<'a> = BoxFuture<'a, Result<Charge, ApiError>>;

/// A quota as it is stored.
struct Stored {
    quota: ResourceQuota,
    revision: Revision,
}

/// Computes the charge of a create, or of an update of `old`. Does nothing in a namespace without quotas. `None` if the write
/// cannot use more.
///
/// # Errors
/// `Forbidden` if a quota would be exceeded, or does not say what is used yet.
pub(crate) fn charge<'a>(
    registry: &'a Registry,
    context: &'a RequestContext,
    target: &'a Target,
    old: Option<&'a dyn Object>,
    new: &'a dyn Object,
) -> Option<Charging<'a>> {
    let counted =
        usage::is_counted(target.kind) && old.is_none_or(|old| may_use_more(target, old, new));
    counted.then(|| Box::pin(charge_quotas(registry, context, target, old, new)) as Charging<'a>)
}

async fn charge_quotas(
    registry: &Registry,
    context: &RequestContext,
    target: &Target,
    old: Option<&dyn Object>,
    new: &dyn Object,
) -> Result<Charge, ApiError> {
    if read(registry, target, AtLeast::Any).await?.is_empty() {
        return Ok(Charge::default());
    }
    let guard = registry.quota_locks().lock(&target.namespace).await?;
    let quotas = read(registry, target, AtLeast::Newest).await?;
    let changed =
        charged(quotas, target, old, new).map_err(|why| errors::forbidden(target, &why, None))?;
    let preconditions = changed.into_iter();
    Ok(Charge {
        preconditions: preconditions
            .map(|stored| stored.into_precondition(context))
            .collect(),
        _guard: Some(guard),
    })
}

/// Returns whether an update may use more: of a Pod only if it is resized or moves to another scope. Volumes of claims are resized and
/// get another class by writes of the status.
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

async fn read(registry: &Registry, target: &Target, at: AtLeast) -> Result<Vec<Stored>, ApiError> {
    let all = Filter::all(kind_of::<ResourceQuota>(), target.namespace.as_str());
    let listed = registry.cache().list(&all, at).await?;
    // A limit that cannot be read is not ignored.
    let listed = listed.complete(all.kind())?;
    let mut quotas = Vec::new();
    for item in listed.items {
        let mut quota = errors::readable(ResourceQuota::decode(item.raw.as_ref()))?;
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
    /// Returns the precondition that the quota is unchanged, which writes the new `status.used`. The watch cache sends the changes
    /// of several quotas in one revision so that none is missed.
    fn into_precondition(self, context: &RequestContext) -> Precondition {
        let kind = kind_of::<ResourceQuota>();
        let target = Target::whole(kind, &setpoint_model::Key::of(&self.quota.metadata));
        let cause = context.clone().by("resource-quota").cause();
        let raw = Object::encode(&self.quota);
        let value = envelope::write(&kind.api_version(), &kind.kind, &raw, Some(&cause));
        Precondition {
            key: target::path(&target),
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
