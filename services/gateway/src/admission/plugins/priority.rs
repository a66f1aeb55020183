//! Admission of new Pods: the service account, priority class and runtime class that they name must exist (upstream: the
//! admission plugins ServiceAccount, Priority and RuntimeClass), and default tolerations, resources and topology
//! labels are set (upstream: DefaultTolerationSeconds, LimitRanger and PodTopologyLabels).

use std::fmt::Display;
use std::sync::Arc;

use setpoint_codec::kind_of;
use setpoint_model::Key;
use setpoint_proto::core::Pod;
use setpoint_proto::scheduling::PriorityClass;
use setpoint_proto::{ApiError, Resource};

use super::{limit_ranger, pod_topology_labels, runtime_class, service_account};
use crate::kinds::pod::tolerations;
use crate::kinds::priorityclass;
use crate::kinds::validation::podspec::MIRROR;
use crate::registry::{AtLeast, Cached, Registry, Target, errors};

/// Checks the objects that a new Pod names, and completes it from them.
///
/// # Errors
/// `Forbidden` if one of them does not exist.
pub(crate) async fn admit(
    pod: &mut Pod,
    target: &Target,
    registry: &Registry,
) -> Result<(), ApiError> {
    match pod.metadata.annotations.contains_key(MIRROR) {
        true => check_mirror(pod).map_err(|why| errors::forbidden(target, why, None))?,
        false => service_account::admit(pod, target, registry).await?,
    }
    set_priority(pod, target, registry).await?;
    runtime_class::admit(pod, target, registry).await?;
    tolerations::add_defaults(&mut pod.spec.tolerations);
    pod_topology_labels::label_pod(pod, registry).await?;
    limit_ranger::fill_pod(pod, &target.namespace, registry).await
}

/// Refuses a mirror Pod, which is not run through the API, with an account.
fn check_mirror(pod: &Pod) -> Result<(), &'static str> {
    let spec = &pod.spec;
    if !spec.service_account_name.is_empty() || !spec.service_account.is_empty() {
        return Err("a mirror pod may not reference service accounts");
    }
    let projected = spec.volumes.iter();
    let projected = projected.filter_map(|volume| volume.volume_source.projected.as_ref());
    let mut sources = projected.flat_map(|projected| &projected.sources);
    match sources.any(|source| source.service_account_token.is_some()) {
        true => Err("a mirror pod may not use ServiceAccountToken volume projections"),
        false => Ok(()),
    }
}

/// Sets the priority and the preemption policy of the class that the Pod names, or of the default class. Nobody else may set
/// them: whoever chose the priority of a Pod could evict the Pods of all others.
async fn set_priority(pod: &mut Pod, target: &Target, registry: &Registry) -> Result<(), ApiError> {
    let class = find_class(&pod.spec.priority_class_name, target, registry).await?;
    let spec = &mut pod.spec;
    take("integer", "priority", &mut spec.priority, class.value)
        .and_then(|()| match class.preemption_policy {
            Some(policy) => take(
                "string",
                "PreemptionPolicy",
                &mut spec.preemption_policy,
                policy,
            ),
            None => Ok(()),
        })
        .map_err(|why| errors::forbidden(target, &why, None))?;
    spec.priority_class_name = class.metadata.name;
    Ok(())
}

/// Returns an object of the cache, or of the store if it is not in the cache yet.
pub(super) async fn find<T: Resource>(
    key: &Key,
    registry: &Registry,
) -> Result<Option<Arc<Cached>>, ApiError> {
    let kind = kind_of::<T>();
    match registry.cache().get(kind, key, AtLeast::Any).await? {
        None => registry.cache().get(kind, key, AtLeast::Newest).await,
        found => Ok(found),
    }
}

/// Returns the class of this name; without a name the default class or, if there is none, [`priorityclass::unclassified`].
async fn find_class(
    name: &str,
    target: &Target,
    registry: &Registry,
) -> Result<PriorityClass, ApiError> {
    if name.is_empty() {
        let classes = priorityclass::defaults(registry, AtLeast::Any).await?;
        let default = priorityclass::default(&classes).cloned();
        return Ok(default.unwrap_or_else(priorityclass::unclassified));
    }
    let mut system = priorityclass::system_classes();
    if let Some(class) = system.find(|class| class.metadata.name == name) {
        return Ok(class);
    }
    match find::<PriorityClass>(&Key::new("", name), registry).await? {
        Some(cached) => priorityclass::of(&cached),
        None => {
            let why = format!("no PriorityClass with name {name} was found");
            Err(errors::forbidden(target, &why, None))
        }
    }
}

/// Sets a field to the value of the priority class; one that is given must be equal.
fn take<T: PartialEq + Display>(
    of: &str,
    field: &str,
    given: &mut Option<T>,
    computed: T,
) -> Result<(), String> {
    match given {
        Some(given) if *given != computed => Err(format!(
            "the {of} value of {field} ({given}) must not be provided in pod spec; priority admission controller \
            computed {computed} from the given PriorityClass name"
        )),
        _ => {
            *given = Some(computed);
            Ok(())
        }
    }
}
