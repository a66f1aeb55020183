//! Keeps the objects that every namespace has: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`; and
//! removes tokens in Secrets that nobody uses. Each has a controller of its own, as upstream: the
//! serviceaccount-controller, the root-ca-certificate-publisher and the legacy-service-account-token-cleaner.

pub mod account;
pub mod legacy_token;
pub mod root_ca;

use setpoint_controller::{Receipt, Whole, Written};
use setpoint_model::Key;
use setpoint_proto::core::Namespace;
use setpoint_proto::{ApiError, Reason, Resource};

/// The view of a namespace.
pub type NamespaceView = Whole<Namespace>;

/// Returns the key of the namespace of an object.
fn namespace_of(object: &Key) -> Key {
    Key::new("", &object.namespace)
}

/// Returns the result of a create that has nothing left to do if the object exists or its namespace is gone.
fn unless_exists<T: Resource>(created: Result<Written<T>, ApiError>) -> Result<Receipt, ApiError> {
    match created {
        Err(error) if error.reason == Reason::AlreadyExists => Ok(Receipt::none()),
        created => Receipt::unless_gone(created.map(|created| created.receipt())),
    }
}
