//! Restrictions of the approval, the signing and the subjects of requests for certificates (upstream: the plugins
//! CertificateApproval, CertificateSigning and CertificateSubjectRestriction).
//!
//! A user needs the verb `approve` or `sign` on the resource `signers`, with the name of the signer of the request or
//! with that of its domain, as in `example.com/*`.

use std::sync::Arc;

use futures::future::ready;
use setpoint_kinds::certificatesigningrequest::subject;
use setpoint_kinds::{Identity, Subresource};
use setpoint_model::users::ADMINISTRATORS;
use setpoint_proto::certificates::CertificateSigningRequest;

use super::{Plugin, Step};
use crate::admission::{Attributes, Operation, Reader};
use crate::errors;
use crate::request::authorization::Authorizer;
use crate::request::{self, Resource};

/// The signer of certificates with which users are known to the API.
const CLIENTS: &str = "kubernetes.io/kube-apiserver-client";

/// The plugin CertificateApproval: the approval or denial of a request.
pub(in crate::admission) struct CertificateApproval {
    pub(in crate::admission) authorizer: Arc<Authorizer>,
}

impl Plugin for CertificateApproval {
    fn check<'a>(&'a self, request: Attributes<'a>, _reader: &'a dyn Reader) -> Option<Step<'a>> {
        let (old, _) = updated(request, Subresource::Approval)?;
        // That of the old object: the signer cannot be changed.
        let signer = &old.spec.signer_name;
        if may(&self.authorizer, &request.context.user, "approve", signer) {
            return None;
        }
        let why = format!("user not permitted to approve requests with signerName {signer:?}");
        Some(refusal(request, &why))
    }
}

/// The plugin CertificateSigning: the certificate and the conditions of a request.
pub(in crate::admission) struct CertificateSigning {
    pub(in crate::admission) authorizer: Arc<Authorizer>,
}

impl Plugin for CertificateSigning {
    fn check<'a>(&'a self, request: Attributes<'a>, _reader: &'a dyn Reader) -> Option<Step<'a>> {
        let (old, new) = updated(request, Subresource::Status)?;
        let (before, now) = (&old.status, &new.status);
        if before.certificate == now.certificate && before.conditions == now.conditions {
            return None;
        }
        let signer = &old.spec.signer_name;
        if may(&self.authorizer, &request.context.user, "sign", signer) {
            return None;
        }
        let why = format!("user not permitted to sign requests with signerName {signer:?}");
        Some(refusal(request, &why))
    }
}

/// The plugin CertificateSubjectRestriction: nobody asks for a certificate of `system:masters`.
pub(super) struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn check<'a>(&'a self, request: Attributes<'a>, _reader: &'a dyn Reader) -> Option<Step<'a>> {
        let is_create = request.operation == Operation::Create;
        if !is_create || request.target.subresource != Subresource::None {
            return None;
        }
        let new = request
            .object?
            .downcast_ref::<CertificateSigningRequest>()?;
        if new.spec.signer_name != CLIENTS {
            return None;
        }
        let why = match subject(&new.spec.request) {
            Ok(subject)
                if subject
                    .organizations
                    .iter()
                    .any(|group| group == ADMINISTRATORS) =>
            {
                format!("use of {CLIENTS} signer with {ADMINISTRATORS} group is not allowed")
            }
            Ok(_) => return None,
            Err(error) => format!("failed to parse CSR: {error}"),
        };
        Some(refusal(request, &why))
    }
}

/// Returns the request for a certificate before and after an update of a part of it.
fn updated(
    request: Attributes<'_>,
    part: Subresource,
) -> Option<(&CertificateSigningRequest, &CertificateSigningRequest)> {
    let is_update = request.operation == Operation::Update;
    if !is_update || request.target.subresource != part {
        return None;
    }
    Some((
        request.old?.downcast_ref()?,
        request.object?.downcast_ref()?,
    ))
}

fn refusal<'a>(request: Attributes<'_>, why: &str) -> Step<'a> {
    Box::pin(ready(Err(errors::forbidden(request.target, why, None))))
}

/// Returns whether a user has a verb on a signer, or on all of its domain.
fn may(authorizer: &Authorizer, user: &Identity, verb: &'static str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    let names = [signer.to_owned(), format!("{domain}/*")];
    names.into_iter().any(|name| {
        let resource = Resource {
            group: "certificates.k8s.io".into(),
            version: "*".into(),
            resource: "signers".into(),
            name,
            ..Resource::default()
        };
        let question = request::Attributes::of_resource(verb, resource);
        authorizer.allows(user, &question)
    })
}
