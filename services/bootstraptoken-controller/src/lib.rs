//! Keeps bootstrap tokens: the token-cleaner removes those that have expired, and the bootstrap-signer signs the
//! ConfigMap `kube-public/cluster-info` by each of the others. Both are as upstream's controllers of these names.

pub mod cleaner;
mod signature;
pub mod signer;

pub use signature::signature;

use setpoint_controller::Whole;
use setpoint_controller::client::ListOptions;
use setpoint_model::bootstrap_token::{NAMESPACE, TYPE};
use setpoint_proto::core::Secret;

/// The view of a token.
pub type TokenView = Whole<Secret>;

/// Selects the Secrets of bootstrap tokens.
pub fn tokens() -> ListOptions {
    ListOptions {
        namespace: NAMESPACE.to_owned(),
        fields: format!("type={TYPE}"),
        ..ListOptions::default()
    }
}
