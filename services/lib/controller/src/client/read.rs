//! Reading: one object, all of a kind, or everything that happens.

use setpoint_model::{Key, Revision, Verb};
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{GetRequest, ListRequest, Object, WatchRequest};
use setpoint_proto::{ApiError, Reason, Resource, WatchEvent};
use tonic::Streaming;
use tonic::transport::Channel;

use super::Client;
use super::call::rpc;

/// Entries per page: some hundred KB of Pods, well below what one answer may be.
const PAGE: i64 = 500;

/// The selection of a list or watch; by default all objects of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Empty for all namespaces.
    pub namespace: String,
    /// A label selector, as kubectl's `-l` takes it.
    pub labels: String,
    /// A field selector, as kubectl's `--field-selector` takes it.
    pub fields: String,
}

/// The objects of a kind as they stood together at one revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed<T> {
    /// In the order of their keys.
    pub items: Vec<T>,
    /// The revision of the list.
    pub revision: Revision,
}

impl Client {
    /// The newest state of one object.
    ///
    /// # Errors
    /// `NotFound`, or what kept the gateway from answering.
    pub async fn get<T: Resource>(&self, key: &Key) -> Result<T, ApiError> {
        unpack(&self.object(T::RESOURCE, key).await?)
    }

    /// One object with its revision and the cause of its last write, its kind named as in a URL, for example `pods`.
    ///
    /// # Errors
    /// `NotFound`, or what kept the gateway from answering.
    pub async fn object(&self, resource: &str, key: &Key) -> Result<Object, ApiError> {
        let request = GetRequest {
            resource: resource.to_owned(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            ..GetRequest::default()
        };
        self.call(Verb::Get, request, rpc!(get)).await
    }

    /// The newest state of all of a kind, fetched page by page.
    ///
    /// # Errors
    /// The gateway's error, or `ServiceUnavailable` without an answer.
    pub async fn list<T: Resource>(&self, options: &ListOptions) -> Result<Listed<T>, ApiError> {
        let mut items = Vec::new();
        let mut next = String::new();
        loop {
            let request = ListRequest {
                resource: T::RESOURCE.to_owned(),
                namespace: options.namespace.clone(),
                label_selector: options.labels.clone(),
                field_selector: options.fields.clone(),
                limit: PAGE,
                r#continue: next,
                ..ListRequest::default()
            };
            let page = self.call(Verb::Get, request, rpc!(list)).await?;
            for object in &page.items {
                items.push(unpack(object)?);
            }
            if page.r#continue.is_empty() {
                let revision = parse(&page.revision)?;
                return Ok(Listed { items, revision });
            }
            next = page.r#continue;
        }
    }

    /// Opens a watch; only its beginning is bound by the time limit.
    pub(crate) async fn watch(
        &self,
        request: WatchRequest,
    ) -> Result<Streaming<WatchEvent>, ApiError> {
        self.call(Verb::Get, request, rpc!(watch)).await
    }
}

pub(crate) fn unpack<T: Resource>(object: &Object) -> Result<T, ApiError> {
    let any = object.object.as_ref();
    any.ok_or_else(|| malformed("an object without content"))?
        .unpack()
}

pub(crate) fn parse(revision: &str) -> Result<Revision, ApiError> {
    let parsed = revision.parse();
    parsed.map_err(|_| malformed(&format!("the revision {revision:?}")))
}

fn malformed(what: &str) -> ApiError {
    ApiError::new(Reason::InternalError, format!("the gateway sent {what}"))
}
