//! Writes. Each carries its preconditions and returns the revision of its commit.

use prost::Message as _;
use setpoint_model::{Key, Revision, Verb};
use setpoint_proto::authentication::{TokenRequest, TokenRequestSpec, TokenRequestStatus};
use setpoint_proto::core::{Binding, ObjectReference, Pod, ServiceAccount};
use setpoint_proto::meta::{self, DeleteOptions, ObjectMeta};
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{
    CreateRequest, DeleteRequest, Object, PatchRequest, UpdateRequest, patch_request,
};
use setpoint_proto::{Any, ApiError, Body, Reason, Resource};
use setpoint_transport::EarlyEnd;

use super::Client;
use super::call::rpc;
use crate::{Receipt, Written};

/// The preconditions of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The uid that the object must have.
    pub uid: Option<String>,
    /// The revision that the object must have.
    pub revision: Option<Revision>,
}

impl Preconditions {
    /// Returns the precondition on the uid alone.
    pub fn uid(uid: impl Into<String>) -> Self {
        Self {
            uid: Some(uid.into()),
            revision: None,
        }
    }

    /// Returns the preconditions on uid and revision.
    pub fn unchanged(meta: &setpoint_model::Meta) -> Self {
        Self {
            uid: Some(meta.uid.clone()),
            revision: Some(meta.revision),
        }
    }
}

impl Client {
    /// Creates an object.
    ///
    /// # Errors
    /// `AlreadyExists`, `Invalid` and others, as in Kubernetes.
    pub async fn create<T: Resource>(&self, object: &T) -> Result<Written<T>, ApiError> {
        let meta = object.meta();
        let request = CreateRequest {
            resource: T::RESOURCE.to_owned(),
            namespace: meta.namespace.clone(),
            object: Some(Any::pack(object)),
            field_manager: self.writer.to_string(),
            ..CreateRequest::default()
        };
        Written::new(self.send_create(request).await?)
    }

    /// Binds a Pod to a node, if it is still that Pod and unbound.
    ///
    /// # Errors
    /// `Conflict` if it is bound already or another Pod has its name.
    pub async fn bind(&self, pod: &Key, node: &str, uid: &str) -> Result<Receipt, ApiError> {
        let binding = Binding {
            metadata: ObjectMeta {
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
                uid: uid.to_owned(),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                kind: "Node".to_owned(),
                name: node.to_owned(),
                ..ObjectReference::default()
            },
        };
        let request = CreateRequest {
            resource: Pod::RESOURCE.to_owned(),
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            subresource: "binding".to_owned(),
            object: Some(pack_body(BINDING, &binding)),
            field_manager: self.writer.to_string(),
            ..CreateRequest::default()
        };
        Ok(Written::<Pod>::new(self.send_create(request).await?)?.receipt())
    }

    /// Requests a token of a ServiceAccount.
    ///
    /// # Errors
    /// `NotFound` for the account or the object that the token is bound to, `Invalid`.
    pub async fn create_token(
        &self,
        account: &Key,
        spec: TokenRequestSpec,
    ) -> Result<TokenRequestStatus, ApiError> {
        let body = TokenRequest {
            spec,
            ..TokenRequest::default()
        };
        let request = CreateRequest {
            resource: ServiceAccount::RESOURCE.to_owned(),
            namespace: account.namespace.clone(),
            name: account.name.clone(),
            subresource: "token".to_owned(),
            object: Some(pack_body(TOKEN_REQUEST, &body)),
            field_manager: self.writer.to_string(),
            ..CreateRequest::default()
        };
        let answer = self.send_create(request).await?.object.unwrap_or_default();
        let issued = TokenRequest::decode(answer.value.as_ref());
        let issued = issued.map_err(|error| {
            let message = format!("the gateway sent a malformed TokenRequest: {error}");
            ApiError::new(Reason::InternalError, message)
        })?;
        Ok(issued.status)
    }

    /// Replaces an object. A resourceVersion in it makes the write conditional.
    ///
    /// # Errors
    /// `Conflict` if it has changed since, `NotFound`, `Invalid` and others.
    pub async fn update<T: Resource>(&self, object: &T) -> Result<Written<T>, ApiError> {
        self.replace(object, "").await
    }

    /// Replaces an object's status and nothing else: metadata and status of `object` are enough.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub async fn update_status<T: Resource>(&self, object: &T) -> Result<Written<T>, ApiError> {
        self.replace(object, "status").await
    }

    /// Applies a JSON merge patch (RFC 7386) to an object, or to a subresource of it.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub async fn patch<T: Resource>(
        &self,
        key: &Key,
        subresource: &str,
        patch: serde_json::Value,
    ) -> Result<Written<T>, ApiError> {
        let request = PatchRequest {
            resource: T::RESOURCE.to_owned(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            subresource: subresource.to_owned(),
            r#type: patch_request::Type::Merge.into(),
            patch: patch.to_string().into(),
            field_manager: self.writer.to_string(),
            ..PatchRequest::default()
        };
        Written::new(self.call(Verb::Patch, request, rpc!(patch)).await?)
    }

    /// Deletes an object; `grace` in seconds, `None` for the default of the object.
    ///
    /// Returns the current version if finalizers or a grace period keep the object, otherwise its last version.
    ///
    /// # Errors
    /// `NotFound`, or `Conflict` if a precondition fails.
    pub async fn delete<T: Resource>(
        &self,
        key: &Key,
        preconditions: Preconditions,
        grace: Option<i64>,
    ) -> Result<Written<T>, ApiError> {
        let options = DeleteOptions {
            grace_period_seconds: grace,
            preconditions: preconditions.into_message(),
            ..DeleteOptions::default()
        };
        self.delete_with_options(key, options).await
    }

    /// Deletes an object as these options say, for example what becomes of its dependants.
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub async fn delete_with_options<T: Resource>(
        &self,
        key: &Key,
        options: DeleteOptions,
    ) -> Result<Written<T>, ApiError> {
        let request = DeleteRequest {
            resource: T::RESOURCE.to_owned(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            options: Some(options),
            field_manager: self.writer.to_string(),
            ..DeleteRequest::default()
        };
        Written::new(self.call(Verb::Delete, request, rpc!(delete)).await?)
    }

    async fn send_create(&self, request: CreateRequest) -> Result<Object, ApiError> {
        self.call(Verb::Create, request, rpc!(create)).await
    }

    pub(super) async fn replace<T: Resource>(
        &self,
        object: &T,
        subresource: &str,
    ) -> Result<Written<T>, ApiError> {
        let meta = object.meta();
        let request = UpdateRequest {
            resource: T::RESOURCE.to_owned(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            subresource: subresource.to_owned(),
            object: Some(Any::pack(object)),
            field_manager: self.writer.to_string(),
            ..UpdateRequest::default()
        };
        Written::new(self.call(Verb::Update, request, rpc!(update)).await?)
    }
}

impl Preconditions {
    pub(super) fn into_message(self) -> Option<meta::Preconditions> {
        (self != Self::default()).then(|| meta::Preconditions {
            uid: self.uid,
            resource_version: self.revision.map(|revision| revision.to_string()),
        })
    }
}

/// The types of request bodies, which are not stored and so not a `Resource`.
const BINDING: &str = "type.googleapis.com/k8s.core.v1.Binding";
const TOKEN_REQUEST: &str = "type.googleapis.com/k8s.authentication.v1.TokenRequest";

fn pack_body(type_url: &str, body: &impl Body) -> Any {
    Any {
        type_url: type_url.to_owned(),
        value: body.encode_to_vec().into(),
    }
}
