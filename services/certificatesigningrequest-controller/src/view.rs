//! A view of a CertificateSigningRequest.

use jiff::Timestamp;
use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_proto::certificates::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
};

use crate::pem;

/// A CertificateSigningRequest.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// The spec.
    pub spec: CertificateSigningRequestSpec,
    /// The conditions.
    pub conditions: Vec<CertificateSigningRequestCondition>,
    /// Whether it has a certificate.
    pub is_issued: bool,
    /// The time at which the certificate expires.
    pub expires: Option<Timestamp>,
}

impl View for RequestView {
    type Object = CertificateSigningRequest;

    fn of(object: CertificateSigningRequest) -> Self {
        let mut meta = Meta::of(&object.metadata);
        meta.labels.clear();
        meta.annotations.clear();
        let certificate = &object.status.certificate;
        Self {
            meta,
            is_issued: !certificate.is_empty(),
            expires: pem::expiry(certificate),
            spec: object.spec,
            conditions: object.status.conditions,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl RequestView {
    /// Returns a condition.
    pub fn condition(&self, of: &str) -> Option<&CertificateSigningRequestCondition> {
        let mut conditions = self.conditions.iter();
        conditions.find(|condition| condition.r#type == of)
    }

    /// Returns whether it is approved, and neither denied nor failed.
    pub fn is_approved(&self) -> bool {
        self.condition("Approved").is_some()
            && self.condition("Denied").is_none()
            && self.condition("Failed").is_none()
    }

    /// Returns whether nobody has decided on it.
    pub fn is_pending(&self) -> bool {
        !self.is_issued
            && ["Approved", "Denied", "Failed"]
                .iter()
                .all(|of| self.condition(of).is_none())
    }
}
