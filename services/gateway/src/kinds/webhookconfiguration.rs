//! ValidatingWebhookConfiguration, MutatingWebhookConfiguration.

use setpoint_proto::admissionregistration::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};

use super::StoredKind;

impl StoredKind for ValidatingWebhookConfiguration {}
impl StoredKind for MutatingWebhookConfiguration {}
