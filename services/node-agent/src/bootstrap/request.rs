//! A CertificateSigningRequest, from its creation to its certificate.

use std::time::Duration;

use setpoint_controller::{Backoff, Client};
use setpoint_model::Key;
use setpoint_proto::certificates::{CertificateSigningRequest, CertificateSigningRequestSpec};
use setpoint_proto::{ApiError, Reason};
use setpoint_tls::SigningRequest;
use tokio::time::sleep;

/// The time for which certificates are valid, as those of services.
const VALID_SECONDS: i32 = 24 * 3600;
/// The digits of the digest of a key in the name of its request.
const DIGITS: usize = 32;

/// The signers of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// Of clients of the API.
    Client,
    /// Of servers.
    Serving,
}

impl Signer {
    const fn name(self) -> &'static str {
        match self {
            Self::Client => "kubernetes.io/kube-apiserver-client-kubelet",
            Self::Serving => "kubernetes.io/kubelet-serving",
        }
    }

    const fn purpose(self) -> &'static str {
        match self {
            Self::Client => "client auth",
            Self::Serving => "server auth",
        }
    }
}

/// The reason why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody has denied the request.
    #[error("the request {name} for a certificate was denied: {message}")]
    Denied {
        /// The name of the request.
        name: String,
        /// The reason.
        message: String,
    },
    /// The signer does not sign it.
    #[error("the request {name} for a certificate has failed: {message}")]
    Failed {
        /// The name of the request.
        name: String,
        /// The reason.
        message: String,
    },
    /// The request is gone.
    #[error("the request {name} for a certificate was deleted")]
    Deleted {
        /// The name of the request.
        name: String,
    },
    /// The gateway refuses the request.
    #[error("the gateway refuses the request for a certificate: {}", .0.message)]
    Refused(ApiError),
}

/// Asks for a certificate, and waits for it. Does not end while nobody decides, or no gateway answers.
///
/// # Errors
/// Why there will be none.
pub async fn obtain(
    gateway: &Client,
    signer: Signer,
    request: &SigningRequest,
) -> Result<String, Error> {
    let object = object(signer, request);
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
    loop {
        let created = gateway.create(&object).await;
        match created.map(drop) {
            Err(error) if error.reason == Reason::AlreadyExists => break,
            outcome if is_lasting(&outcome)? => break,
            _ => sleep(backoff.next_delay()).await,
        }
    }
    backoff.reset();
    let key = Key::of(&object.metadata);
    loop {
        let read = gateway.get::<CertificateSigningRequest>(&key).await;
        match read {
            Err(error) if error.reason == Reason::NotFound => {
                return Err(Error::Deleted { name: key.name });
            }
            Ok(read) => {
                if let Some(certificate) = outcome(&read)? {
                    return Ok(certificate);
                }
            }
            Err(error) => {
                is_lasting(&Err(error))?;
            }
        }
        sleep(backoff.next_delay()).await;
    }
}

/// Returns whether a call has succeeded; false if it may succeed later.
///
/// # Errors
/// If it will not.
fn is_lasting(outcome: &Result<(), ApiError>) -> Result<bool, Error> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) => match error.reason {
            Reason::Unauthorized | Reason::Forbidden | Reason::Invalid | Reason::BadRequest => {
                Err(Error::Refused(error.clone()))
            }
            _ => Ok(false),
        },
    }
}

fn object(signer: Signer, request: &SigningRequest) -> CertificateSigningRequest {
    let mut digest = request.key_digest();
    digest.truncate(DIGITS);
    let mut object = CertificateSigningRequest::default();
    object.metadata.name = format!("node-csr-{digest}");
    object.spec = CertificateSigningRequestSpec {
        request: request.pem().as_bytes().to_vec().into(),
        signer_name: signer.name().to_owned(),
        expiration_seconds: Some(VALID_SECONDS),
        usages: ["digital signature", signer.purpose()]
            .map(str::to_owned)
            .into(),
        ..CertificateSigningRequestSpec::default()
    };
    object
}

/// Returns the certificate of a request; `None` while there is none.
///
/// # Errors
/// If there will be none.
fn outcome(request: &CertificateSigningRequest) -> Result<Option<String>, Error> {
    let name = request.metadata.name.clone();
    let conditions = &request.status.conditions;
    let message = |of: &str| {
        let found = conditions.iter().find(|one| one.r#type == of)?;
        Some(found.message.clone())
    };
    if let Some(message) = message("Denied") {
        return Err(Error::Denied { name, message });
    }
    if let Some(message) = message("Failed") {
        return Err(Error::Failed { name, message });
    }
    let certificate = String::from_utf8_lossy(&request.status.certificate);
    Ok(Some(certificate.into_owned()).filter(|certificate| !certificate.is_empty()))
}

#[cfg(test)]
mod tests {
    use setpoint_proto::certificates::CertificateSigningRequestCondition;

    use super::*;

    fn answered(condition: &str, certificate: &str) -> CertificateSigningRequest {
        let request = SigningRequest::create("system:node:a", "system:nodes", &[]).unwrap();
        let mut object = object(Signer::Client, &request);
        object.status.conditions = vec![CertificateSigningRequestCondition {
            r#type: condition.into(),
            message: "the bootstrap token was used".into(),
            ..CertificateSigningRequestCondition::default()
        }];
        object.status.certificate = certificate.as_bytes().to_vec().into();
        object
    }

    #[test]
    fn a_request_ends_with_its_certificate_or_the_reason_for_none() {
        let waits = outcome(&answered("Approved", ""));
        assert!(waits.unwrap().is_none());
        let issued = outcome(&answered("Approved", "pem"));
        assert_eq!(issued.unwrap().as_deref(), Some("pem"));
        for condition in ["Denied", "Failed"] {
            let refused = outcome(&answered(condition, "")).unwrap_err().to_string();
            assert!(
                refused.ends_with("the bootstrap token was used"),
                "{refused}"
            );
        }
    }

    #[test]
    fn requests_of_one_key_have_one_name() {
        let first = SigningRequest::create("system:node:a", "system:nodes", &[]).unwrap();
        let again = SigningRequest::of_key(&first.key(), "system:node:a", "system:nodes");
        let names = [&first, &again.unwrap()].map(|one| object(Signer::Client, one).metadata.name);
        assert_eq!(names[0], names[1]);
        assert_eq!(names[0].len(), "node-csr-".len() + DIGITS);
    }

    #[test]
    fn what_the_gateway_does_not_allow_is_not_tried_again() {
        let refused = Err(ApiError::new(Reason::Forbidden, "no"));
        assert!(is_lasting(&refused).is_err());
        let later = Err(ApiError::new(Reason::ServiceUnavailable, "starting"));
        assert!(!is_lasting(&later).unwrap());
        assert!(is_lasting(&Ok(())).unwrap());
    }
}
