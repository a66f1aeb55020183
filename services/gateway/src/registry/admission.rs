//! What a new Pod names must be there, or it could not keep what it promises: an account, a class of priority, a class
//! of runtimes. As Kubernetes' admission plugins ServiceAccount, Priority and RuntimeClass.

use setpoint_codec::{Object, kinds};
use setpoint_model::Key;
use setpoint_proto::core::{Pod, ServiceAccount};
use setpoint_proto::{ApiError, Resource as _};

use super::{AtLeast, Registry, Target, errors};

/// The account that every namespace has, in Kubernetes.
const DEFAULT_ACCOUNT: &str = "default";
const MIRROR: &str = "kubernetes.io/config.mirror";
/// The classes that are there from the start; there are no others yet.
const SYSTEM_PRIORITIES: [(&str, i32); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

impl Registry {
    /// Completes a new Pod by what it names.
    ///
    /// # Errors
    /// `Forbidden` when that is not there.
    pub(super) async fn admit(
        &self,
        target: &Target,
        object: &mut dyn Object,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.downcast_mut::<Pod>() else {
            return Ok(());
        };
        if !pod.metadata.annotations.contains_key(MIRROR) {
            self.find_account(target, pod).await?;
        }
        let forbidden = |why: String| errors::forbidden(target, &why, None);
        set_priority(pod).map_err(forbidden)?;
        check_runtime(pod).map_err(forbidden)
    }

    async fn find_account(&self, target: &Target, pod: &Pod) -> Result<(), ApiError> {
        let names = [&pod.spec.service_account_name, &pod.spec.service_account];
        let name = names.into_iter().find(|name| !name.is_empty());
        let Some(name) = name.filter(|name| *name != DEFAULT_ACCOUNT) else {
            return Ok(());
        };
        let kind = kinds()
            .by_resource(ServiceAccount::RESOURCE)
            .expect("its message is compiled in");
        let key = Key::new(&target.namespace, name);
        for at in [AtLeast::Any, AtLeast::Newest] {
            if self.cache.get(kind, &key, at).await?.is_some() {
                return Ok(());
            }
        }
        let namespace = &target.namespace;
        let why = format!(
            "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
        );
        Err(errors::forbidden(target, &why, None))
    }
}

/// A number without a class is kept as it is.
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

/// Without classes of runtimes, no Pod can name one.
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
