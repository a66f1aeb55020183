//! Act: executes actions.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use setpoint_controller::client::Preconditions;
use setpoint_controller::{Client, Receipt};
use setpoint_model::bootstrap_token::USED_BY_ANNOTATION;
use setpoint_proto::authorization::{ExtraValue, ResourceAttributes, SubjectAccessReviewSpec};
use setpoint_proto::certificates::{CertificateSigningRequest, CertificateSigningRequestCondition};
use setpoint_proto::core::{Node, Secret};
use setpoint_proto::{ApiError, Reason};

use crate::{Action, Approval, Authority, Request, RequestView, Signing, TokenView, World};

pub(crate) async fn act(
    client: &Client,
    settings: &Signing,
    world: &World,
    action: &Action,
) -> Result<Receipt, ApiError> {
    let view = &world.request;
    Receipt::unless_gone(match (action, &world.token) {
        (Action::Claim, Some(token)) => claim(client, token, &view.meta.uid).await,
        (Action::RemoveToken, Some(token)) => {
            let same = Preconditions::unchanged(&token.meta);
            let deleted = client.delete::<Secret>(&token.meta.key, same, None).await;
            deleted.map(|written| written.receipt())
        }
        _ => act_on_request(client, settings, view, action).await,
    })
}

async fn act_on_request(
    client: &Client,
    settings: &Signing,
    view: &RequestView,
    action: &Action,
) -> Result<Receipt, ApiError> {
    match action {
        Action::Approve(approval) => approve(client, view, *approval).await,
        Action::Deny(why) => {
            let denied = condition("Denied", "BootstrapToken", why);
            decide(client, view, denied).await
        }
        Action::CreateNode(name) => create_node(client, name).await,
        Action::Sign(request) => sign(client, settings, view, request).await,
        Action::Fail(problem) => {
            let failed = condition("Failed", "SignerValidationFailure", problem);
            write_status(client, view, |object| {
                object.status.conditions.push(failed);
            })
            .await
        }
        Action::Delete => {
            let same = Preconditions::unchanged(&view.meta);
            let deleted = client.delete::<CertificateSigningRequest>(&view.meta.key, same, None);
            deleted.await.map(|written| written.receipt())
        }
        // Without a token, which they are planned for.
        Action::Claim | Action::RemoveToken => Ok(Receipt::none()),
    }
}

/// Claims a token for the request with this uid, if it is as it was observed.
async fn claim(client: &Client, token: &TokenView, uid: &str) -> Result<Receipt, ApiError> {
    let mut patch = json!({ "metadata": {
        "uid": token.meta.uid,
        "resourceVersion": token.meta.revision.to_string(),
    } });
    patch["metadata"]["annotations"] = json!({ USED_BY_ANNOTATION: uid });
    let claimed = client.patch::<Secret>(&token.meta.key, "", patch).await;
    claimed.map(|written| written.receipt())
}

/// Creates a Node, unless there is one by now. Its agent reports everything but the name.
async fn create_node(client: &Client, name: &str) -> Result<Receipt, ApiError> {
    let mut node = Node::default();
    name.clone_into(&mut node.metadata.name);
    match client.create(&node).await {
        Err(error) if error.reason == Reason::AlreadyExists => Ok(Receipt::none()),
        created => created.map(|written| written.receipt()),
    }
}

fn condition(of: &str, reason: &str, message: &str) -> CertificateSigningRequestCondition {
    let now = Timestamp::now();
    CertificateSigningRequestCondition {
        r#type: of.to_owned(),
        status: "True".to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_update_time: now.into(),
        last_transition_time: now.into(),
    }
}

/// Approves a request. If that is for a permission of its user that this does not have, a person has to.
async fn approve(
    client: &Client,
    view: &RequestView,
    approval: Approval,
) -> Result<Receipt, ApiError> {
    let (permission, message) = match approval {
        Approval::OwnNodeClient => (
            Some("selfnodeclient"),
            "Auto approving self kubelet client certificate after SubjectAccessReview.",
        ),
        Approval::NodeClient => (
            Some("nodeclient"),
            "Auto approving kubelet client certificate after SubjectAccessReview.",
        ),
        Approval::Token => (
            None,
            "Auto approving the client certificate of the node that the bootstrap token is for.",
        ),
        Approval::Serving => (
            None,
            "Auto approving the serving certificate of a node for its own addresses.",
        ),
    };
    if let Some(permission) = permission
        && !client.review_access(question(view, permission)).await?
    {
        return Ok(Receipt::none());
    }
    decide(client, view, condition("Approved", "AutoApproved", message)).await
}

/// Returns the question whether the user of a request may create a part of it.
fn question(view: &RequestView, permission: &str) -> SubjectAccessReviewSpec {
    let spec = &view.spec;
    let extra = spec.extra.iter().map(|(name, value)| {
        let items = value.items.clone();
        (name.clone(), ExtraValue { items })
    });
    SubjectAccessReviewSpec {
        user: spec.username.clone(),
        uid: spec.uid.clone(),
        groups: spec.groups.clone(),
        extra: extra.collect(),
        resource_attributes: Some(ResourceAttributes {
            group: "certificates.k8s.io".to_owned(),
            resource: "certificatesigningrequests".to_owned(),
            verb: "create".to_owned(),
            subresource: permission.to_owned(),
            version: "*".to_owned(),
            ..ResourceAttributes::default()
        }),
        ..SubjectAccessReviewSpec::default()
    }
}

/// Writes a decision on a request.
async fn decide(
    client: &Client,
    view: &RequestView,
    decision: CertificateSigningRequestCondition,
) -> Result<Receipt, ApiError> {
    let mut object = unchanged(client, view).await?;
    object.status.conditions.push(decision);
    Ok(client.update_part(&object, "approval").await?.receipt())
}

/// Signs a request for as long as it asks, at most as long as the settings allow.
async fn sign(
    client: &Client,
    settings: &Signing,
    view: &RequestView,
    request: &Request,
) -> Result<Receipt, ApiError> {
    let authority = Authority::load(client, settings).await?;
    let requested = view.spec.expiration_seconds;
    let requested = requested.and_then(|seconds| u64::try_from(seconds).ok());
    let valid = requested.map_or(settings.duration, Duration::from_secs);
    let valid = valid.min(settings.duration).max(Signing::SHORTEST);
    let certificate = authority.sign(request, &view.spec.usages, valid, Timestamp::now());
    let certificate =
        certificate.map_err(|problem| ApiError::new(Reason::InternalError, problem))?;
    write_status(client, view, |object| {
        object.status.certificate = certificate.into_bytes().into();
    })
    .await
}

async fn write_status(
    client: &Client,
    view: &RequestView,
    change: impl FnOnce(&mut CertificateSigningRequest),
) -> Result<Receipt, ApiError> {
    let mut object = unchanged(client, view).await?;
    change(&mut object);
    Ok(client.update_status(&object).await?.receipt())
}

/// Reads the request, which must be the version that was observed.
async fn unchanged(
    client: &Client,
    view: &RequestView,
) -> Result<CertificateSigningRequest, ApiError> {
    let mut object = client
        .get::<CertificateSigningRequest>(&view.meta.key)
        .await?;
    // The write fails if it has changed since.
    object.metadata.uid.clone_from(&view.meta.uid);
    object.metadata.resource_version = view.meta.revision.to_string();
    Ok(object)
}
