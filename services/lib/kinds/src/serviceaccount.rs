//! ServiceAccount: the defaults of [`StoredKind`].

use setpoint_proto::core::ServiceAccount;

use super::StoredKind;

impl StoredKind for ServiceAccount {
    const RETURNS_DELETED: bool = true;
}
