//! Who asks, and whether they may.
//!
//! Nothing is asked for yet: the listener is on loopback, and everyone who reaches it is its administrator.
//! Certificates, tokens and rules come in here, so that no verb has to know of them.

use setpoint_codec::Kind;
use setpoint_model::Verb;
use setpoint_proto::ApiError;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub name: String,
    /// What the user belongs to.
    pub groups: Vec<String>,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            name: "system:admin".into(),
            groups: vec!["system:masters".into()],
        }
    }
}

/// May `who` do that?
///
/// # Errors
/// `Forbidden` if not; so far everyone may everything.
pub fn allow(_who: &Identity, _verb: Verb, _kind: &Kind, _namespace: &str) -> Result<(), ApiError> {
    Ok(())
}
