//! The objects, and everything that ever happened to them.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use prost::Message;
use setpoint_proto::coordination::Lease;
use setpoint_proto::meta::{ObjectMeta, StatusCause, StatusDetails};
use setpoint_proto::setpoint::Object;
use setpoint_proto::{Any, ApiError, Cause, EventType, FENCED, Reason, Resource};

use super::Faults;

/// What all kinds have in common on the wire.
#[derive(Clone, PartialEq, Message)]
pub struct Partial {
    #[prost(message, required, tag = "1")]
    pub metadata: ObjectMeta,
}

type Path = (String, String, String);

pub struct Change {
    pub revision: u64,
    pub kind: EventType,
    pub resource: String,
    pub object: Object,
}

#[derive(Default)]
pub struct World {
    pub revision: u64,
    pub log: Vec<Change>,
    /// Changes up to here are forgotten.
    pub compacted: u64,
    /// Watches of an earlier epoch break.
    pub epoch: u64,
    pub bookmarks: u64,
    pub faults: Faults,
    pub calls: HashMap<&'static str, usize>,
    objects: BTreeMap<Path, Object>,
}

impl World {
    pub fn compact(&mut self) {
        self.compacted = self.revision;
        self.log.clear();
    }

    pub fn put<T: Resource>(&mut self, object: &T, cause: Option<Cause>) -> T {
        let path = path(T::RESOURCE, object.meta());
        // The term of a Lease that nobody takes over stands on.
        let former = || self.objects.get(&path)?.cause.clone();
        let cause = match T::RESOURCE == Lease::RESOURCE {
            true => cause.or_else(former),
            false => cause,
        };
        let object = self.write(path, Any::pack(object), cause);
        object.object.unwrap().unpack().unwrap()
    }

    pub fn get<T: Resource>(&self, resource: &str, namespace: &str, name: &str) -> Option<T> {
        let path = (resource.into(), namespace.into(), name.into());
        let any = self.objects.get(&path)?.object.as_ref()?;
        Some(any.unpack().unwrap())
    }

    pub fn all<T: Resource>(&self, resource: &str) -> Vec<T> {
        let objects = self.select(resource, "", "");
        objects
            .map(|object| object.object.as_ref().unwrap().unpack().unwrap())
            .collect()
    }

    pub fn select(
        &self,
        resource: &str,
        namespace: &str,
        fields: &str,
    ) -> impl Iterator<Item = &Object> {
        self.objects
            .values()
            .filter(move |object| is_in(object, resource, namespace, fields))
    }

    pub fn find(&self, resource: &str, namespace: &str, name: &str) -> Result<Object, ApiError> {
        let path = (resource.into(), namespace.into(), name.into());
        let not_found = || error(Reason::NotFound, format!("{resource} {name:?} not found"));
        self.objects.get(&path).cloned().ok_or_else(not_found)
    }

    pub fn create(&mut self, resource: &str, any: Any, cause: Cause) -> Result<Object, ApiError> {
        let meta = meta_of(&any);
        if resource != "namespaces" && !meta.namespace.is_empty() && meta.namespace != "default" {
            self.find("namespaces", "", &meta.namespace)?;
        }
        match self.find(resource, &meta.namespace, &meta.name) {
            Ok(_) => Err(error(
                Reason::AlreadyExists,
                format!("{} already exists", meta.name),
            )),
            Err(_) => {
                let cause = with_term(resource, &any, None, cause);
                Ok(self.write(path(resource, &meta), any, Some(cause)))
            }
        }
    }

    pub fn update(&mut self, resource: &str, any: Any, cause: Cause) -> Result<Object, ApiError> {
        let meta = meta_of(&any);
        let former = self.find(resource, &meta.namespace, &meta.name)?;
        if !meta.resource_version.is_empty() && meta.resource_version != former.revision {
            return Err(error(
                Reason::Conflict,
                "the object has been modified".into(),
            ));
        }
        let cause = with_term(resource, &any, Some(&former), cause);
        Ok(self.write(path(resource, &meta), any, Some(cause)))
    }

    pub fn remove(
        &mut self,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Object, ApiError> {
        let mut object = self.find(resource, namespace, name)?;
        self.objects
            .remove(&(resource.into(), namespace.into(), name.into()));
        self.revision += 1;
        object.revision = self.revision.to_string();
        self.record(EventType::Deleted, resource, object.clone());
        Ok(object)
    }

    /// Does the term of this fence still stand?
    pub fn check(&self, fence: &str) -> Result<(), ApiError> {
        let mut parts = fence.split('/');
        let mut next = || parts.next().unwrap();
        let lease = self.find(Lease::RESOURCE, next(), next()).ok();
        let term = lease.as_ref().and_then(term).unwrap_or_default();
        if term.to_string() == next() {
            return Ok(());
        }
        let cause = StatusCause {
            reason: FENCED.into(),
            ..StatusCause::default()
        };
        let details = StatusDetails {
            causes: vec![cause],
            ..StatusDetails::default()
        };
        Err(error(Reason::Conflict, "fenced".into()).with_details(details))
    }

    fn write(&mut self, path: Path, any: Any, cause: Option<Cause>) -> Object {
        self.revision += 1;
        let former = self.objects.get(&path);
        let kind = former.map_or(EventType::Added, |_| EventType::Modified);
        let object = Object {
            object: Some(stamped(any, self.revision)),
            revision: self.revision.to_string(),
            cause,
        };
        let resource = path.0.clone();
        self.objects.insert(path, object.clone());
        self.record(kind, &resource, object.clone());
        object
    }

    fn record(&mut self, kind: EventType, resource: &str, object: Object) {
        let (revision, resource) = (self.revision, resource.to_owned());
        self.log.push(Change {
            revision,
            kind,
            resource,
            object,
        });
    }
}

pub fn is_in(object: &Object, resource: &str, namespace: &str, fields: &str) -> bool {
    let any = object.object.as_ref().unwrap();
    let meta = meta_of(any);
    let name = fields.strip_prefix("metadata.name=").unwrap_or(&meta.name);
    is_kind(any, resource)
        && name == meta.name
        && (namespace.is_empty() || namespace == meta.namespace)
}

/// Only the kinds that the tests use.
fn is_kind(any: &Any, resource: &str) -> bool {
    let plural = resource.split('.').next().unwrap();
    let kind = any.type_url.rsplit('.').next().unwrap();
    format!("{}s", kind.to_lowercase()) == plural
}

pub fn meta_of(any: &Any) -> ObjectMeta {
    Partial::decode(any.value.as_ref()).unwrap().metadata
}

/// As the gateway does it: a second `metadata` field is merged into the first.
fn stamped(any: Any, revision: u64) -> Any {
    let metadata = ObjectMeta {
        uid: match meta_of(&any).uid.as_str() {
            "" => format!("uid-{revision}"),
            uid => uid.to_owned(),
        },
        resource_version: revision.to_string(),
        ..ObjectMeta::default()
    };
    let mut value = any.value.to_vec();
    value.extend(Partial { metadata }.encode_to_vec());
    Any {
        value: Bytes::from(value),
        ..any
    }
}

/// Each change of the holder is a new term, which stands in the cause.
fn with_term(resource: &str, any: &Any, former: Option<&Object>, mut cause: Cause) -> Cause {
    if resource != Lease::RESOURCE {
        return cause;
    }
    let holder = |any: &Any| any.unpack::<Lease>().unwrap().spec.holder_identity;
    let former = former.map(|former| (holder(former.object.as_ref().unwrap()), term(former)));
    cause.lease_term = Some(match former {
        Some((former, Some(term))) => term + u64::from(former != holder(any)),
        Some((_, None)) => 1,
        None => 0,
    });
    cause
}

fn term(lease: &Object) -> Option<u64> {
    lease.cause.as_ref()?.lease_term
}

fn path(resource: &str, meta: &ObjectMeta) -> Path {
    (resource.into(), meta.namespace.clone(), meta.name.clone())
}

pub fn error(reason: Reason, message: String) -> ApiError {
    ApiError::new(reason, message)
}
