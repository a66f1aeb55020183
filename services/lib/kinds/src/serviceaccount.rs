//! ServiceAccount: Pods run as it, with the tokens that are issued for it.

use setpoint_proto::core::ServiceAccount;

use super::StoredKind;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::Warnings;

/// The annotation that limits the Secrets of Pods to those of the account.
const ENFORCE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

impl StoredKind for ServiceAccount {
    const RETURNS_DELETED: bool = true;

    fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
        let is_set = |account: &Self| account.metadata.annotations.contains_key(ENFORCE_SECRETS);
        if is_set(self) && !old.is_some_and(is_set) {
            let path = FieldPath::root("metadata");
            let path = path.field("annotations");
            let text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
            warnings.about(&path.key(ENFORCE_SECRETS), text);
        }
    }
}
