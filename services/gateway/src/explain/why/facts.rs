//! The object, those that own it, and the Pods that it is made of.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use setpoint_codec::{Kind, kinds};
use setpoint_model::Key;
use setpoint_proto::apps::ReplicaSet;
use setpoint_proto::core::Pod;
use setpoint_proto::meta::{ObjectMeta, OwnerReference};
use setpoint_proto::setpoint::{Observer, Subject};
use setpoint_proto::{ApiError, Cause, Reason, Resource};

use super::pod::is_ready;
use crate::explain::history::{History, What, json};
use crate::kinds::Role;
use crate::registry::{AtLeast, Cached, Filter, Registry, Target};

/// So many owners above each other: a Pod, its set, its Deployment, and room for more.
const GENERATIONS: usize = 4;
/// So many Pods that are not ready are looked at.
const PODS: usize = 8;

/// What the store knows of the object that is asked about.
pub(super) struct Found {
    pub subject: Subject,
    pub exists: bool,
    pub uid: String,
    pub revision: String,
    pub generation: i64,
    pub cause: Option<Cause>,
    pub json: Option<Value>,
    owners: Vec<OwnerReference>,
    resource: String,
}

impl Found {
    pub fn of(target: &Target, history: &History) -> Result<Self, ApiError> {
        let newest = history.versions.first();
        let object = newest.map(|version| &version.object);
        let meta = object
            .map(|object| meta(object))
            .transpose()?
            .unwrap_or_default();
        Ok(Self {
            subject: subject(target.kind, &target.key()),
            exists: newest.is_some_and(|version| version.what != What::Deleted),
            revision: newest
                .map(|version| version.revision.to_string())
                .unwrap_or_default(),
            cause: newest.and_then(|version| version.cause.clone()),
            json: object.map(|object| json(object)).transpose()?,
            uid: meta.uid,
            generation: meta.generation,
            owners: meta.owner_references,
            resource: target.kind.resource(),
        })
    }

    /// # Errors
    /// `NotFound` when neither the store nor any controller has heard of it.
    pub fn expect_something(&self, observers: &[Observer]) -> Result<(), ApiError> {
        let heard_of = observers.iter().any(|one| !one.rounds.is_empty());
        if self.json.is_some() || heard_of {
            return Ok(());
        }
        let message = format!("{} {:?} not found", self.resource, self.subject.name);
        Err(ApiError::new(Reason::NotFound, message))
    }
}

/// Objects whose rounds and state say something about the one that is asked about.
#[derive(Default)]
pub(super) struct Related {
    /// The one itself, its sets and its Pods that are not ready.
    pub subjects: Vec<Subject>,
    /// The nearest first.
    pub owners: Vec<Subject>,
    /// Its Pods that are not ready, as JSON.
    pub pods: Vec<(Subject, Value)>,
}

impl Related {
    pub async fn of(registry: &Registry, target: &Target, found: &Found) -> Result<Self, ApiError> {
        let mut related = Self {
            subjects: vec![found.subject.clone()],
            owners: owners(registry, target, &found.owners).await?,
            pods: Vec::new(),
        };
        let is_workload = crate::kinds::of(target.kind).role() == Role::Workload;
        if found.exists && is_workload {
            related.look_down(registry, target, &found.uid).await?;
        }
        Ok(related)
    }

    /// Deployments have sets, and sets have Pods: everything that is controlled by one of them counts.
    async fn look_down(
        &mut self,
        registry: &Registry,
        target: &Target,
        uid: &str,
    ) -> Result<(), ApiError> {
        let mut uids = HashSet::from([uid.to_owned()]);
        for kind in [kind::<ReplicaSet>(), kind::<Pod>()] {
            let filter = Filter::all(kind, &target.namespace);
            for object in registry.cache().list(&filter, AtLeast::Any).await?.items {
                let meta = meta(&object)?;
                let mut owners = meta.owner_references.iter();
                if !owners.any(|owner| owner.controller == Some(true) && uids.contains(&owner.uid))
                {
                    continue;
                }
                uids.insert(meta.uid);
                self.take(kind, &object)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, kind: &'static Kind, object: &Arc<Cached>) -> Result<(), ApiError> {
        let subject = subject(kind, &object.key);
        if kind != self::kind::<Pod>() {
            return Ok(());
        }
        let pod = json(object)?;
        if !is_ready(&pod) && self.pods.len() < PODS {
            self.subjects.push(subject.clone());
            self.pods.push((subject, pod));
        }
        Ok(())
    }
}

async fn owners(
    registry: &Registry,
    target: &Target,
    references: &[OwnerReference],
) -> Result<Vec<Subject>, ApiError> {
    let mut owners = Vec::new();
    let mut references = references.to_vec();
    while owners.len() < GENERATIONS {
        let Some(owner) = references
            .into_iter()
            .find(|one| one.controller == Some(true))
        else {
            break;
        };
        let Some(kind) = kinds().by_kind(&owner.api_version, &owner.kind) else {
            break;
        };
        let key = Key::new(&target.namespace, owner.name);
        owners.push(subject(kind, &key));
        let object = registry.cache().get(kind, &key, AtLeast::Any).await?;
        let Some(object) = object else { break };
        references = meta(&object)?.owner_references;
    }
    Ok(owners)
}

pub(super) fn kind<T: Resource>() -> &'static Kind {
    kinds()
        .by_resource(T::RESOURCE)
        .expect("its message is compiled in")
}

fn subject(kind: &Kind, key: &Key) -> Subject {
    Subject {
        resource: kind.resource(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    }
}

fn meta(object: &Cached) -> Result<ObjectMeta, ApiError> {
    Ok(object.decode()?.meta().clone())
}
