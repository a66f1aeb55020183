//! The user of a request.

use std::collections::BTreeMap;

use setpoint_model::users::ADMINISTRATORS;

/// The authenticated user of a request. The default is nobody: it has neither a name nor a group, so that no rule
/// allows it anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

impl Identity {
    /// Returns the user of requests without credentials on a connection without TLS.
    pub fn administrator() -> Self {
        Self::of_masters("system:admin")
    }

    /// Returns the user of what the API server does by itself (upstream: `user.APIServerUser`).
    pub fn server() -> Self {
        Self::of_masters("system:apiserver")
    }

    fn of_masters(name: &str) -> Self {
        Self {
            name: name.into(),
            groups: vec![ADMINISTRATORS.into(), AUTHENTICATED.into()],
            ..Self::default()
        }
    }
}
