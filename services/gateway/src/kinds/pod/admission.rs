//! Admission of new Pods: the service account, priority class and runtime class that they name must exist (upstream: the
//! admission plugins ServiceAccount, Priority and RuntimeClass).

use std::fmt::Display;
use std::sync::Arc;

use setpoint_codec::kind_of;
use setpoint_model::Key;
use setpoint_proto::core::{Pod, ServiceAccount};
use setpoint_proto::scheduling::PriorityClass;
use setpoint_proto::{ApiError, Resource};

use crate::kinds::priorityclass;
use crate::registry::validation::podspec::MIRROR;
use crate::registry::{AtLeast, Cached, Registry, Target, errors};

/// The account that every namespace has in Kubernetes. It need not exist here.
const DEFAULT_ACCOUNT: &str = "default";

/// Checks the objects that a new Pod names, and completes it from them.
///
/// # Errors
/// `Forbidden` if one of them does not exist.
pub(super) async fn admit(
    pod: &mut Pod,
    target: &Target,
    registry: &Registry,
) -> Result<(), ApiError> {
    if !pod.metadata.annotations.contains_key(MIRROR) {
        check_account(pod, target, registry).await?;
    }
    set_priority(pod, target, registry).await?;
    check_runtime(pod).map_err(|why| errors::forbidden(target, &why, None))
}

async fn check_account(pod: &Pod, target: &Target, registry: &Registry) -> Result<(), ApiError> {
    let names = [&pod.spec.service_account_name, &pod.spec.service_account];
    let name = names.into_iter().find(|name| !name.is_empty());
    let Some(name) = name.filter(|name| *name != DEFAULT_ACCOUNT) else {
        return Ok(());
    };
    let key = Key::new(&target.namespace, name);
    if find::<ServiceAccount>(&key, registry).await?.is_some() {
        return Ok(());
    }
    let namespace = &target.namespace;
    let why = format!(
        "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
    );
    Err(errors::forbidden(target, &why, None))
}

/// Sets the priority and the preemption policy of the class that the Pod names, or of the default class. Without both, a
/// given priority is kept.
async fn set_priority(pod: &mut Pod, target: &Target, registry: &Registry) -> Result<(), ApiError> {
    let Some(class) = find_class(&pod.spec.priority_class_name, target, registry).await? else {
        return Ok(());
    };
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
async fn find<T: Resource>(
    key: &Key,
    registry: &Registry,
) -> Result<Option<Arc<Cached>>, ApiError> {
    let kind = kind_of::<T>();
    match registry.cache().get(kind, key, AtLeast::Any).await? {
        None => registry.cache().get(kind, key, AtLeast::Newest).await,
        found => Ok(found),
    }
}

/// Returns the class of this name, or the default class, if there is one, without a name.
async fn find_class(
    name: &str,
    target: &Target,
    registry: &Registry,
) -> Result<Option<PriorityClass>, ApiError> {
    if name.is_empty() {
        let classes = priorityclass::all(registry, AtLeast::Any).await?;
        return Ok(priorityclass::default(&classes).cloned());
    }
    let mut system = priorityclass::system_classes();
    if let Some(class) = system.find(|class| class.metadata.name == name) {
        return Ok(Some(class));
    }
    match find::<PriorityClass>(&Key::new("", name), registry).await? {
        Some(cached) => priorityclass::of(&cached).map(Some),
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

/// Refuses a runtime class: none exists yet.
fn check_runtime(pod: &Pod) -> Result<(), String> {
    match &pod.spec.runtime_class_name {
        Some(name) => Err(format!("pod rejected: RuntimeClass {name:?} not found")),
        None if !pod.spec.overhead.is_empty() => Err(
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
                .into(),
        ),
        None => Ok(()),
    }
}
