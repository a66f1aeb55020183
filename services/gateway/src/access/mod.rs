//! Who asks, and whether they may.
//!
//! Nothing is asked for yet: the listener is on loopback, and everyone who reaches it is its administrator.
//! Certificates, tokens and rules come in here, so that no verb has to know of them.

use setpoint_codec::Kind;
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

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// As it stands in rules and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::List => "LIST",
            Self::Watch => "WATCH",
            Self::Create => "POST",
            Self::Update => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::DeleteCollection => "DELETECOLLECTION",
        }
    }

    /// The method of `setpoint.v1.Objects` that does it.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Get => "Get",
            Self::List => "List",
            Self::Watch => "Watch",
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Patch => "Patch",
            Self::Delete | Self::DeleteCollection => "Delete",
        }
    }

    /// Does it change anything?
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// May `who` do that?
///
/// # Errors
/// `Forbidden` if not; so far everyone may everything.
pub fn allow(_who: &Identity, _verb: Verb, _kind: &Kind, _namespace: &str) -> Result<(), ApiError> {
    Ok(())
}
