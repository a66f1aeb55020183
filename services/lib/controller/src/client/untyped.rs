//! Objects of kinds that are known by name only, custom ones included.

use std::collections::BTreeMap;

use setpoint_model::{Revision, Verb};
use setpoint_proto::setpoint::metadata_client::MetadataClient;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{
    CountMetadataRequest, DeleteRequest, GetMetadataRequest, GetMetadataResponse,
    ListMetadataRequest, MetadataEvent, ObjectMetadata, RemoveMetadataRequest,
    WatchMetadataRequest,
};
use setpoint_proto::{ApiError, meta::DeleteOptions};
use setpoint_transport::EarlyEnd;
use tonic::Streaming;

use super::call::rpc;
use super::read::parse;
use super::{Client, MAX_ANSWER};
use crate::ObjectRef;

/// Sends a request by the method of this name of the service `Metadata`.
macro_rules! metadata {
    ($client:ident, $method:ident) => {{
        let client = MetadataClient::new($client.channel());
        let mut client = client.max_decoding_message_size(MAX_ANSWER);
        async move |_: ObjectsClient<EarlyEnd>, request| client.$method(request).await
    }};
}

impl Client {
    /// Returns the metadata of all objects in a namespace, ordered by kind; a consistent read.
    ///
    /// # Errors
    /// `ServiceUnavailable` or `Timeout` without a response.
    pub async fn content_of(&self, namespace: &str) -> Result<Vec<ObjectMetadata>, ApiError> {
        self.list_metadata(namespace, "").await
    }

    /// Returns the metadata of all objects that refer to the owner with this uid, in its namespace or, if that is
    /// empty, in all; a consistent read.
    ///
    /// # Errors
    /// As [`Self::content_of`].
    pub async fn dependants_of(
        &self,
        namespace: &str,
        uid: &str,
    ) -> Result<Vec<ObjectMetadata>, ApiError> {
        self.list_metadata(namespace, uid).await
    }

    async fn list_metadata(
        &self,
        namespace: &str,
        owner: &str,
    ) -> Result<Vec<ObjectMetadata>, ApiError> {
        let request = ListMetadataRequest {
            namespace: namespace.to_owned(),
            owner: owner.to_owned(),
            ..ListMetadataRequest::default()
        };
        let list = metadata!(self, list);
        Ok(self.call(Verb::Get, request, list).await?.items)
    }

    /// Returns the metadata of an object and its owners; a consistent read.
    ///
    /// # Errors
    /// `NotFound`; `ServiceUnavailable` or `Timeout` without a response.
    pub async fn with_owners(&self, object: &ObjectRef) -> Result<GetMetadataResponse, ApiError> {
        let request = GetMetadataRequest {
            resource: object.resource.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            ..GetMetadataRequest::default()
        };
        self.call(Verb::Get, request, metadata!(self, get)).await
    }

    /// Returns the numbers of objects of these kinds in a namespace, without kinds that do not exist; a consistent
    /// read.
    ///
    /// # Errors
    /// `ServiceUnavailable` or `Timeout` without a response.
    pub async fn count(
        &self,
        namespace: &str,
        resources: Vec<String>,
    ) -> Result<BTreeMap<String, u64>, ApiError> {
        let request = CountMetadataRequest {
            namespace: namespace.to_owned(),
            resources,
            ..CountMetadataRequest::default()
        };
        let count = metadata!(self, count);
        Ok(self.call(Verb::Get, request, count).await?.numbers)
    }

    /// Opens a watch of the metadata of all objects: of the changes after a revision or, without one, of all objects
    /// and then of changes. The time limit covers its opening only.
    ///
    /// # Errors
    /// `Expired` if the revision is too old.
    pub async fn watch_metadata(
        &self,
        after: Option<Revision>,
    ) -> Result<Streaming<MetadataEvent>, ApiError> {
        let request = WatchMetadataRequest {
            revision: after.map(|after| after.to_string()).unwrap_or_default(),
            ..WatchMetadataRequest::default()
        };
        self.watch_some_metadata(request).await
    }

    /// Opens a watch of the metadata of objects as the request selects them, otherwise as [`Self::watch_metadata`].
    ///
    /// # Errors
    /// As [`Self::watch_metadata`].
    pub async fn watch_some_metadata(
        &self,
        request: WatchMetadataRequest,
    ) -> Result<Streaming<MetadataEvent>, ApiError> {
        self.call(Verb::Get, request, metadata!(self, watch)).await
    }

    /// Removes parts of the metadata of an object.
    ///
    /// # Errors
    /// `NotFound` if there is no object of that name and uid.
    pub async fn remove_metadata(&self, parts: RemoveMetadataRequest) -> Result<(), ApiError> {
        let request = RemoveMetadataRequest {
            field_manager: self.writer().to_owned(),
            ..parts
        };
        self.call(Verb::Patch, request, metadata!(self, remove))
            .await
            .map(|_| ())
    }

    /// Deletes an object as these options say. Returns the revision at which it was written last.
    ///
    /// # Errors
    /// `NotFound`, or `Conflict` if a precondition fails.
    pub async fn delete_object(
        &self,
        object: &ObjectRef,
        options: DeleteOptions,
    ) -> Result<Revision, ApiError> {
        let request = DeleteRequest {
            resource: object.resource.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            options: Some(options),
            field_manager: self.writer().to_owned(),
            ..DeleteRequest::default()
        };
        let answer = self.call(Verb::Delete, request, rpc!(delete)).await?;
        parse(&answer.revision)
    }
}
