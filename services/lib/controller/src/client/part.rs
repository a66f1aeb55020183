//! Requests other than reads and writes of objects: access reviews, and writes of further subresources.

use prost::Message as _;
use setpoint_model::Verb;
use setpoint_proto::authorization::{SubjectAccessReview, SubjectAccessReviewSpec};
use setpoint_proto::setpoint::CreateRequest;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::{Any, ApiError, Reason, Resource};
use setpoint_transport::EarlyEnd;

use super::Client;
use super::call::rpc;
use crate::Written;

const RESOURCE: &str = "subjectaccessreviews.authorization.k8s.io";
const TYPE: &str = "type.googleapis.com/k8s.authorization.v1.SubjectAccessReview";

impl Client {
    /// Asks whether a user may do something.
    ///
    /// # Errors
    /// If the question is malformed or the gateway does not answer.
    pub async fn review_access(&self, spec: SubjectAccessReviewSpec) -> Result<bool, ApiError> {
        let review = SubjectAccessReview {
            spec,
            ..SubjectAccessReview::default()
        };
        let request = CreateRequest {
            resource: RESOURCE.to_owned(),
            object: Some(Any {
                type_url: TYPE.to_owned(),
                value: review.encode_to_vec().into(),
            }),
            field_manager: self.writer.to_string(),
            ..CreateRequest::default()
        };
        let answer = self.call(Verb::Create, request, rpc!(create)).await?;
        let answer = answer.object.unwrap_or_default();
        let review = SubjectAccessReview::decode(answer.value.as_ref()).map_err(|error| {
            let message = format!("the gateway sent a malformed SubjectAccessReview: {error}");
            ApiError::new(Reason::InternalError, message)
        })?;
        Ok(review.status.allowed)
    }

    /// Replaces a subresource other than `status`, such as `approval` or `finalize`.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub async fn update_part<T: Resource>(
        &self,
        object: &T,
        subresource: &str,
    ) -> Result<Written<T>, ApiError> {
        self.replace(object, subresource).await
    }
}
