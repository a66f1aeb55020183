//! The subresource `scale` of objects of any kind, custom ones included.

use setpoint_model::Verb;
use setpoint_proto::autoscaling::Scale;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{GetRequest, Object, UpdateRequest};
use setpoint_proto::{Any, ApiError, Body, Reason};
use setpoint_transport::EarlyEnd;

use super::Client;
use super::call::rpc;
use crate::ObjectRef;

/// A Scale is not stored, and so not a `Resource`.
const TYPE_URL: &str = "type.googleapis.com/k8s.autoscaling.v1.Scale";

impl Client {
    /// Returns the scale of an object.
    ///
    /// # Errors
    /// `NotFound` if there is no such object, or its kind has no subresource `scale`; `ServiceUnavailable` or `Timeout`
    /// without a response.
    pub async fn scale(&self, of: &ObjectRef) -> Result<Scale, ApiError> {
        let request = GetRequest {
            resource: of.resource.clone(),
            namespace: of.namespace.clone(),
            name: of.name.clone(),
            subresource: "scale".to_owned(),
            ..GetRequest::default()
        };
        unpack(&self.call(Verb::Get, request, rpc!(get)).await?)
    }

    /// Sets the replicas of an object. The resourceVersion of a scale that was read makes the write conditional.
    /// Returns the new scale.
    ///
    /// # Errors
    /// `Conflict` if the object has changed since, and those of [`Self::scale`].
    pub async fn update_scale(&self, of: &ObjectRef, scale: &Scale) -> Result<Scale, ApiError> {
        let request = UpdateRequest {
            resource: of.resource.clone(),
            namespace: of.namespace.clone(),
            name: of.name.clone(),
            subresource: "scale".to_owned(),
            object: Some(pack(scale)),
            field_manager: self.writer().to_owned(),
            ..UpdateRequest::default()
        };
        unpack(&self.call(Verb::Update, request, rpc!(update)).await?)
    }
}

fn pack(scale: &impl Body) -> Any {
    Any {
        type_url: TYPE_URL.to_owned(),
        value: scale.encode_to_vec().into(),
    }
}

fn unpack<S: Body>(object: &Object) -> Result<S, ApiError> {
    let any = object
        .object
        .as_ref()
        .filter(|any| any.type_url == TYPE_URL);
    let scale = any.and_then(|any| S::decode(any.value.as_ref()).ok());
    scale.ok_or_else(|| ApiError::new(Reason::InternalError, "the gateway sent no Scale"))
}
