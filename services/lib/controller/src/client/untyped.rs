//! Objects of kinds that are known by name only, custom ones included.

use setpoint_model::{Revision, Verb};
use setpoint_proto::setpoint::metadata_client::MetadataClient;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{DeleteRequest, ListMetadataRequest, ObjectMetadata};
use setpoint_proto::{ApiError, meta::DeleteOptions};
use tonic::transport::Channel;

use super::call::rpc;
use super::read::parse;
use super::{Client, MAX_ANSWER};
use crate::ObjectRef;

impl Client {
    /// Returns the metadata of all objects in a namespace, ordered by kind; a consistent read.
    ///
    /// # Errors
    /// `ServiceUnavailable` or `Timeout` without a response.
    pub async fn content_of(&self, namespace: &str) -> Result<Vec<ObjectMetadata>, ApiError> {
        let request = ListMetadataRequest {
            namespace: namespace.to_owned(),
            ..ListMetadataRequest::default()
        };
        let client = MetadataClient::new(self.channel());
        let mut client = client.max_decoding_message_size(MAX_ANSWER);
        let list = async move |_: ObjectsClient<Channel>, request| client.list(request).await;
        Ok(self.call(Verb::Get, request, list).await?.items)
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
