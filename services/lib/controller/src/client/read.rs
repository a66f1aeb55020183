//! Reads: get, list and watch.

use setpoint_model::{Key, Revision, Verb};
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{GetRequest, ListRequest, Object, WatchRequest};
use setpoint_proto::{ApiError, Reason, Resource, WatchEvent};
use setpoint_transport::EarlyEnd;
use tonic::Streaming;

use super::Client;
use super::call::rpc;

/// Objects per page: some hundred KB of Pods, well below the largest response.
const PAGE: i64 = 500;

/// The selection of a list or watch; by default all objects of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Empty for all namespaces.
    pub namespace: String,
    /// A label selector, in the syntax of kubectl's `-l`.
    pub labels: String,
    /// A field selector, in the syntax of kubectl's `--field-selector`.
    pub fields: String,
}

/// The objects of a kind at one revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed<T> {
    /// In the order of their keys.
    pub items: Vec<T>,
    /// The revision of the list.
    pub revision: Revision,
}

impl Client {
    /// Returns the newest version of an object.
    ///
    /// # Errors
    /// `NotFound`; `ServiceUnavailable` or `Timeout` without a response.
    pub async fn get<T: Resource>(&self, key: &Key) -> Result<T, ApiError> {
        unpack(&self.object(T::RESOURCE, key).await?)
    }

    /// Returns an object with its revision and the cause of its last write. `resource` names the kind as in a URL, for
    /// example `pods`.
    ///
    /// # Errors
    /// `NotFound`; `ServiceUnavailable` or `Timeout` without a response.
    pub async fn object(&self, resource: &str, key: &Key) -> Result<Object, ApiError> {
        let request = GetRequest {
            resource: resource.to_owned(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            ..GetRequest::default()
        };
        self.call(Verb::Get, request, rpc!(get)).await
    }

    /// Lists the objects of a kind at the newest revision, page by page.
    ///
    /// # Errors
    /// The gateway's error; `ServiceUnavailable` or `Timeout` without a response.
    pub async fn list<T: Resource>(&self, options: &ListOptions) -> Result<Listed<T>, ApiError> {
        let mut items = Vec::new();
        let revision = self.for_each(options, |object| items.push(object)).await?;
        Ok(Listed { items, revision })
    }

    /// Calls `visit` with the objects of a kind at the newest revision, and returns that. They are read page by page,
    /// so that never more than a page is held.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn for_each<T: Resource>(
        &self,
        options: &ListOptions,
        mut visit: impl FnMut(T) + Send,
    ) -> Result<Revision, ApiError> {
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
                visit(unpack(object)?);
            }
            if page.r#continue.is_empty() {
                return parse(&page.revision);
            }
            next = page.r#continue;
        }
    }

    /// Opens a watch. The time limit covers its opening only.
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
