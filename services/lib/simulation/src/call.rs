//! Calls of the gateway, as far as faults and the log need to know them.

use std::fmt;

use bytes::Bytes;
use prost::Message;
use setpoint_codec::kinds;
use setpoint_model::Key;
use setpoint_proto::setpoint::{
    CreateRequest, DeleteRequest, PatchRequest, RemoveMetadataRequest, UpdateRequest,
    WatchMetadataRequest, WatchRequest,
};

/// The prefix of a message in gRPC: a flag and the length.
const PREFIX: usize = 5;
const LEASES: &str = "leases.coordination.k8s.io";

/// The verb and the object of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// The kind, as the plural with its group.
    pub resource: String,
    /// The object; without a name if the gateway chooses that.
    pub key: Key,
    /// The part of the object; empty for all of it.
    pub subresource: String,
    /// The name of the method in lower case, for example `create`.
    pub verb: String,
}

impl Call {
    /// Returns the call of a method with an encoded request; `None` for a method that does not write.
    pub(crate) fn of(method: &str, body: &Bytes) -> Option<Self> {
        let message = body.get(PREFIX..)?;
        let (resource, namespace, name, subresource) = match method {
            "Create" => {
                let it = CreateRequest::decode(message).ok()?;
                let name = match it.name.is_empty() {
                    true => name_of(&it)?,
                    false => it.name,
                };
                (it.resource, it.namespace, name, it.subresource)
            }
            "Update" => {
                let it = UpdateRequest::decode(message).ok()?;
                (it.resource, it.namespace, it.name, it.subresource)
            }
            "Patch" => {
                let it = PatchRequest::decode(message).ok()?;
                (it.resource, it.namespace, it.name, it.subresource)
            }
            "Delete" => {
                let it = DeleteRequest::decode(message).ok()?;
                (it.resource, it.namespace, it.name, String::new())
            }
            "Remove" => {
                let it = RemoveMetadataRequest::decode(message).ok()?;
                (it.resource, it.namespace, it.name, String::new())
            }
            _ => return None,
        };
        Some(Self {
            resource,
            key: Key::new(namespace, name),
            subresource,
            verb: method.to_lowercase(),
        })
    }

    /// Returns whether it writes a Lease.
    pub(crate) fn is_of_lease(&self) -> bool {
        self.resource == LEASES
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, key, .. } = self;
        let kind = kind(&self.resource);
        match self.subresource.as_str() {
            "" => write!(f, "{verb} {kind} {}", short(key)),
            part => write!(f, "{verb} {part} of {kind} {}", short(key)),
        }
    }
}

/// A watch to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Watched {
    /// The kind, as the plural with its group; `metadata` for that of all kinds.
    pub(crate) resource: String,
    /// The revision that it continues after.
    pub(crate) after: Option<u64>,
}

impl Watched {
    /// Returns the watch that a request opens; `None` for another request.
    pub(crate) fn of(path: &str, body: &Bytes) -> Option<Self> {
        let message = body.get(PREFIX..)?;
        let (resource, revision) = match path {
            "/setpoint.v1.Objects/Watch" => {
                let it = WatchRequest::decode(message).ok()?;
                (it.resource, it.revision)
            }
            "/setpoint.v1.Metadata/Watch" => {
                let it = WatchMetadataRequest::decode(message).ok()?;
                ("metadata".to_owned(), it.revision)
            }
            _ => return None,
        };
        Some(Self {
            resource,
            after: revision.parse().ok(),
        })
    }
}

/// Returns the name of the object to create.
fn name_of(request: &CreateRequest) -> Option<String> {
    let object = request.object.as_ref()?;
    let kind = kinds().by_resource(&request.resource)?;
    let object = kind.decode(&object.value).ok()?;
    let meta = object.meta();
    Some(match meta.name.is_empty() {
        true => format!("{}?", meta.generate_name),
        false => meta.name.clone(),
    })
}

/// Returns the kind of a resource in lower case.
pub fn kind(resource: &str) -> String {
    let kind = kinds().by_resource(resource);
    kind.map_or_else(|| resource.to_owned(), |kind| kind.kind.to_lowercase())
}

/// Returns a key without the namespace `default`.
pub fn short(key: &Key) -> String {
    match key.namespace.as_str() {
        "default" => key.name.clone(),
        _ => key.to_string(),
    }
}
