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

    /// Returns whether it is neither approved nor denied.
    pub fn is_pending(&self) -> bool {
        !self.is_issued
            && ["Approved", "Denied", "Failed"]
                .iter()
                .all(|of| self.condition(of).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_approved_or_pending_or_neither() {
        // Conditions, whether there is a certificate; whether it is approved, and whether it is pending.
        let cases: [(&[&str], bool, bool, bool); 8] = [
            (&[], false, false, true),
            (&[], true, false, false),
            (&["Other"], false, false, true),
            (&["Approved"], false, true, false),
            (&["Denied"], false, false, false),
            (&["Failed"], false, false, false),
            (&["Approved", "Denied"], false, false, false),
            (&["Approved", "Failed"], false, false, false),
        ];
        for (conditions, is_issued, approved, pending) in cases {
            let mut object = CertificateSigningRequest::default();
            let conditions = conditions.iter();
            let conditions = conditions.map(|of| CertificateSigningRequestCondition {
                r#type: (*of).to_owned(),
                ..CertificateSigningRequestCondition::default()
            });
            object.status.conditions = conditions.collect();
            object.metadata.name = "one".into();
            object.metadata.labels.insert("a".into(), "b".into());
            object.metadata.annotations.insert("a".into(), "b".into());
            if is_issued {
                object.status.certificate = b"none".to_vec().into();
            }
            let request = RequestView::of(object);
            let found = (request.is_approved(), request.is_pending());
            assert_eq!(found, (approved, pending), "{:?}", request.conditions);
            assert_eq!((request.is_issued, request.expires), (is_issued, None));
            let meta = request.meta();
            assert_eq!(meta.key.name, "one");
            assert!(meta.labels.is_empty() && meta.annotations.is_empty());
        }
    }
}
