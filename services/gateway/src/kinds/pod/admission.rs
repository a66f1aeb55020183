//! Admission of new Pods: the service account, priority class and runtime class that they name must exist (upstream: the
//! admission plugins ServiceAccount, Priority and RuntimeClass).

use setpoint_codec::kind_of;
use setpoint_model::Key;
use setpoint_proto::ApiError;
use setpoint_proto::core::{Pod, ServiceAccount};

use crate::registry::validation::podspec::MIRROR;
use crate::registry::{AtLeast, Registry, Target, errors};

/// The account that every namespace has in Kubernetes. It need not exist here.
const DEFAULT_ACCOUNT: &str = "default";
/// The built-in priority classes; there are no others yet.
const SYSTEM_PRIORITIES: [(&str, i32); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

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
    let forbidden = |why: String| errors::forbidden(target, &why, None);
    set_priority(pod).map_err(forbidden)?;
    check_runtime(pod).map_err(forbidden)
}

async fn check_account(pod: &Pod, target: &Target, registry: &Registry) -> Result<(), ApiError> {
    let names = [&pod.spec.service_account_name, &pod.spec.service_account];
    let name = names.into_iter().find(|name| !name.is_empty());
    let Some(name) = name.filter(|name| *name != DEFAULT_ACCOUNT) else {
        return Ok(());
    };
    let key = Key::new(&target.namespace, name);
    for at in [AtLeast::Any, AtLeast::Newest] {
        let account = registry.cache().get(kind_of::<ServiceAccount>(), &key, at);
        if account.await?.is_some() {
            return Ok(());
        }
    }
    let namespace = &target.namespace;
    let why = format!(
        "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
    );
    Err(errors::forbidden(target, &why, None))
}

/// Sets the priority of the class that the Pod names. A priority without a class is kept.
fn set_priority(pod: &mut Pod) -> Result<(), String> {
    let class = pod.spec.priority_class_name.as_str();
    if class.is_empty() {
        return Ok(());
    }
    let known = SYSTEM_PRIORITIES.iter().find(|(name, _)| *name == class);
    let Some((_, computed)) = known else {
        return Err(format!("no PriorityClass with name {class} was found"));
    };
    match pod.spec.priority {
        Some(given) if given != *computed => Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
            computed {computed} from the given PriorityClass name"
        )),
        _ => {
            pod.spec.priority = Some(*computed);
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
