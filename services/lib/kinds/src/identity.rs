//! The user of a request.

use std::collections::BTreeMap;

/// The authenticated user of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub name: String,
    /// The unique identifier of the user; may be empty.
    pub uid: String,
    /// The groups of the user.
    pub groups: Vec<String>,
    /// Further attributes, such as the Pod that a token is bound to.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The group of every user who is known.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The user of requests without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of users who are not.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

impl Default for Identity {
    fn default() -> Self {
        Self {
            name: "system:admin".into(),
            uid: String::new(),
            groups: vec!["system:masters".into(), AUTHENTICATED.into()],
            extra: BTreeMap::new(),
        }
    }
}
