//! CertificateSigningRequest.

use setpoint_proto::certificates::CertificateSigningRequest;

use super::StoredKind;

impl StoredKind for CertificateSigningRequest {}
