//! Data read once per request for all hooks: its namespace and equivalent kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use prost::Message as _;
use serde_json::Value;
use setpoint_cel::Question;
use setpoint_codec::{Kind, kind_of};
use setpoint_model::Key;
use setpoint_proto::ApiError;
use setpoint_proto::core::Namespace;
use setpoint_proto::meta::ObjectMeta;
use setpoint_store::cache::{AtLeast, Cached};

use super::Attributes;
use super::authorizer::{self, OfUser};
use super::request::document;
use crate::admission::Admission;
use crate::errors;

/// Data that policies and webhooks need besides the attributes of a request.
pub(super) struct RequestData {
    /// The labels of the namespace of the request; `None` if there is none, or none any more.
    pub namespace: Option<BTreeMap<String, String>>,
    /// The variable `namespaceObject`; null for requests about objects without a namespace.
    pub namespace_object: Value,
    /// The kinds of the other versions of the resource.
    pub equivalents: Vec<&'static Kind>,
    /// The authorizer, asked about the user of the request.
    pub authorizer: OfUser,
    /// The question about the resource of the request, for an authorizer.
    pub resource: Question,
}

impl RequestData {
    /// Reads the data of a request.
    ///
    /// # Errors
    /// If the namespace cannot be read.
    pub(super) async fn of(
        admission: &Admission,
        request: &Attributes<'_>,
    ) -> Result<Self, ApiError> {
        let namespace = namespace_of(admission, request).await?;
        Ok(Self {
            namespace_object: match &namespace {
                Some(found) if !request.is_of_namespace() => {
                    let found = errors::readable(Namespace::decode(found.raw.as_ref()))?;
                    namespace_object(found)
                }
                _ => Value::Null,
            },
            namespace: namespace.map(|found| found.labels().clone()),
            equivalents: request.equivalents(),
            authorizer: OfUser {
                authorizer: admission.authorizer().clone(),
                user: request.context.user.clone(),
            },
            resource: authorizer::about(request),
        })
    }
}

/// Returns the namespace of a request, if it has one that exists.
async fn namespace_of(
    admission: &Admission,
    request: &Attributes<'_>,
) -> Result<Option<Arc<Cached>>, ApiError> {
    match request.namespace() {
        "" => Ok(None),
        name => {
            let key = Key::new("", name);
            let cache = admission.cache();
            cache.get(kind_of::<Namespace>(), &key, AtLeast::Any).await
        }
    }
}

/// Returns the variable `namespaceObject`.
fn namespace_object(namespace: Namespace) -> Value {
    let meta = namespace.metadata;
    let namespace = Namespace {
        metadata: ObjectMeta {
            managed_fields: Vec::new(),
            owner_references: Vec::new(),
            ..meta
        },
        ..namespace
    };
    document(&namespace)
}
