//! Act: executes actions.

use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::client::Preconditions;
use setpoint_controller::{Client, Receipt};
use setpoint_proto::authorization::{ExtraValue, ResourceAttributes, SubjectAccessReviewSpec};
use setpoint_proto::certificates::{CertificateSigningRequest, CertificateSigningRequestCondition};
use setpoint_proto::{ApiError, Reason};

use crate::{Action, Authority, Request, RequestView, Signing};

pub(crate) async fn act(
    client: &Client,
    settings: &Signing,
    view: &RequestView,
    action: &Action,
) -> Result<Receipt, ApiError> {
    Receipt::unless_gone(match action {
        Action::Approve { of_itself } => approve(client, view, *of_itself).await,
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
    })
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

/// Approves a request if its user may create certificates of nodes. Without that permission a person has to.
async fn approve(client: &Client, view: &RequestView, itself: bool) -> Result<Receipt, ApiError> {
    let spec = &view.spec;
    let (subresource, message) = match itself {
        true => (
            "selfnodeclient",
            "Auto approving self kubelet client certificate after SubjectAccessReview.",
        ),
        false => (
            "nodeclient",
            "Auto approving kubelet client certificate after SubjectAccessReview.",
        ),
    };
    let extra = spec.extra.iter().map(|(name, value)| {
        let items = value.items.clone();
        (name.clone(), ExtraValue { items })
    });
    let question = SubjectAccessReviewSpec {
        user: spec.username.clone(),
        uid: spec.uid.clone(),
        groups: spec.groups.clone(),
        extra: extra.collect(),
        resource_attributes: Some(ResourceAttributes {
            group: "certificates.k8s.io".to_owned(),
            resource: "certificatesigningrequests".to_owned(),
            verb: "create".to_owned(),
            subresource: subresource.to_owned(),
            version: "*".to_owned(),
            ..ResourceAttributes::default()
        }),
        ..SubjectAccessReviewSpec::default()
    };
    if !client.review_access(question).await? {
        return Ok(Receipt::none());
    }
    let mut object = unchanged(client, view).await?;
    let approved = condition("Approved", "AutoApproved", message);
    object.status.conditions.push(approved);
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
