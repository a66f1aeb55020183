//! ServiceAccount: the defaults of [`StoredKind`].

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::core::ServiceAccount;

use super::StoredKind;

impl StoredKind for ServiceAccount {
    const RETURNS_DELETED: bool = true;

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        (column == "Secrets").then(|| self.secrets.len().into())
    }
}
