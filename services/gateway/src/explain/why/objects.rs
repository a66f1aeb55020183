//! The explained object, its owners, and the Pods that it controls.

use std::collections::HashSet;

use setpoint_codec::{Kind, Object};
use setpoint_kinds::Role;
use setpoint_kinds::waits::is_settled;
use setpoint_model::{Key, Selector, owner};
use setpoint_proto::apps::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use setpoint_proto::batch::{CronJob, Job};
use setpoint_proto::core::{Pod, Service};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::setpoint::{ObjectRef, Observer, WriteType};
use setpoint_proto::{ApiError, Cause, Reason, Resource};

use super::reader::Reader;
use crate::explain::history::History;
use crate::registry::{AtLeast, Filter, Registry, Target};

/// The maximum number of owners above each other: a ReplicaSet, its Deployment, and room for more.
const OWNERS: usize = 4;
/// The maximum number of Pods that are explained with their owner.
const PODS: usize = 8;

/// The explained object.
pub(super) struct Subject {
    pub reference: ObjectRef,
    pub exists: bool,
    pub revision: String,
    pub cause: Option<Cause>,
    /// The last known version.
    pub object: Option<Box<dyn Object>>,
}

impl Subject {
    pub fn new(target: &Target, history: &History) -> Result<Self, ApiError> {
        let newest = history.versions.first();
        let revision = newest.map(|version| version.revision.to_string());
        Ok(Self {
            reference: target.key().in_resource(target.kind.resource()),
            exists: newest.is_some_and(|version| version.write != WriteType::Deleted),
            revision: revision.unwrap_or_default(),
            cause: newest.and_then(|version| version.cause.clone()),
            object: newest.map(|version| version.object.decode()).transpose()?,
        })
    }

    pub fn meta(&self) -> Option<&ObjectMeta> {
        self.object.as_deref().map(Object::meta)
    }

    /// Checks that the store or a decision log has records of the object.
    ///
    /// # Errors
    /// `NotFound` if there are none.
    pub fn check_known(&self, kind: &Kind, observers: &[Observer]) -> Result<(), ApiError> {
        let reconciled = observers.iter().any(|one| !one.reconciles.is_empty());
        if self.object.is_some() || reconciled {
            return Ok(());
        }
        let message = format!("{} {:?} not found", kind.resource(), self.reference.name);
        Err(ApiError::new(Reason::NotFound, message))
    }
}

/// The objects whose state and decisions contribute to the explanation.
pub(super) struct Related {
    /// The object itself and its Pods that are not ready.
    pub subjects: Vec<ObjectRef>,
    /// The controlling owner, its controlling owner, and so on.
    pub owners: Vec<ObjectRef>,
    /// The Pods that a workload or a custom object controls, directly or through workloads, or that a Service selects,
    /// and that are not ready.
    /// None if the reader may not list Pods.
    pub pods: Vec<(ObjectRef, Pod)>,
}

impl Related {
    pub async fn find(
        reader: Reader<'_>,
        target: &Target,
        subject: &Subject,
    ) -> Result<Self, ApiError> {
        let mut related = Self {
            subjects: vec![subject.reference.clone()],
            owners: Vec::new(),
            pods: Vec::new(),
        };
        let Some(meta) = subject.meta() else {
            return Ok(related);
        };
        related.owners = owners(reader, &target.namespace, meta).await?;
        let object = subject.object.as_deref().filter(|_| subject.exists);
        let service = object.and_then(|object| object.downcast_ref::<Service>());
        if let Some(service) = service
            && reader.may_list(kind::<Pod>(), &target.namespace)
        {
            related.add_selected(reader.registry, service).await?;
            return Ok(related);
        }
        let between: &[fn() -> &'static Kind] = match setpoint_kinds::of(target.kind).role() {
            Role::Workload => &[kind::<ReplicaSet>, kind::<Job>],
            _ if target.kind.is_custom() => &[
                kind::<CronJob>,
                kind::<Deployment>,
                kind::<StatefulSet>,
                kind::<DaemonSet>,
                kind::<ReplicaSet>,
                kind::<Job>,
            ],
            _ => return Ok(related),
        };
        if subject.exists && reader.may_list(kind::<Pod>(), &target.namespace) {
            let kinds = between.iter().map(|kind| kind());
            related.add_pods(reader.registry, meta, kinds).await?;
        }
        Ok(related)
    }

    /// Adds the Pods that a workload controls, directly or through objects of these kinds, of which a later one may be
    /// controlled by an earlier one.
    async fn add_pods(
        &mut self,
        registry: &Registry,
        workload: &ObjectMeta,
        between: impl Iterator<Item = &'static Kind>,
    ) -> Result<(), ApiError> {
        let mut owners = HashSet::from([workload.uid.clone()]);
        for kind in between.chain([kind::<Pod>()]) {
            let filter = Filter::all(kind, workload.namespace.as_str());
            for cached in registry.cache().list(&filter, AtLeast::Any).await?.items {
                let object = cached.decode()?;
                let owner = owner::controller_of(object.meta());
                if !owner.is_some_and(|owner| owners.contains(&owner.uid)) {
                    continue;
                }
                owners.insert(object.meta().uid.clone());
                if let Ok(pod) = object.into_any().downcast::<Pod>() {
                    self.add_pod(*pod);
                }
            }
        }
        Ok(())
    }

    /// Adds the Pods that a Service selects.
    async fn add_selected(
        &mut self,
        registry: &Registry,
        service: &Service,
    ) -> Result<(), ApiError> {
        if service.spec.selector.is_empty() {
            return Ok(());
        }
        let selector = Selector::from_labels(&service.spec.selector);
        let filter = Filter::all(kind::<Pod>(), service.metadata.namespace.as_str());
        for cached in registry.cache().list(&filter, AtLeast::Any).await?.items {
            let object = cached.decode()?;
            if !selector.matches(&object.meta().labels) {
                continue;
            }
            if let Ok(pod) = object.into_any().downcast::<Pod>() {
                self.add_pod(*pod);
            }
        }
        Ok(())
    }

    fn add_pod(&mut self, pod: Pod) {
        if !is_settled(&pod) && self.pods.len() < PODS {
            let reference = Key::of(&pod.metadata).in_resource(Pod::RESOURCE);
            self.subjects.push(reference.clone());
            self.pods.push((reference, pod));
        }
    }
}

/// Returns the owners above an object. Those of an owner that the reader may not get are left out.
async fn owners(
    reader: Reader<'_>,
    namespace: &str,
    meta: &ObjectMeta,
) -> Result<Vec<ObjectRef>, ApiError> {
    let mut owners = Vec::new();
    let mut next = owner::controller_of(meta).cloned();
    while let Some(owner) = next.take().filter(|_| owners.len() < OWNERS) {
        let cache = reader.registry.cache();
        let Some(kind) = cache.kinds().by_kind(&owner.api_version, &owner.kind) else {
            break;
        };
        let key = Key::new(namespace, owner.name);
        if reader.may_get(kind, &key)
            && let Some(object) = cache.get(kind, &key, AtLeast::Any).await?
        {
            next = owner::controller_of(object.decode()?.meta()).cloned();
        }
        owners.push(key.in_resource(kind.resource()));
    }
    Ok(owners)
}

pub(super) fn kind<T: Resource>() -> &'static Kind {
    setpoint_codec::kinds()
        .by_resource(T::RESOURCE)
        .expect("its message is compiled in")
}
