//! ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding.

use setpoint_proto::admissionregistration::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};

use super::StoredKind;

impl StoredKind for ValidatingAdmissionPolicy {}
impl StoredKind for ValidatingAdmissionPolicyBinding {}
impl StoredKind for MutatingAdmissionPolicy {}
impl StoredKind for MutatingAdmissionPolicyBinding {}
