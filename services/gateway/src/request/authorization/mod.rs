//! Authorization: whether a user may do what a request asks for.
//!
//! The modes are asked in their order, and one that allows a request decides. Members of `system:masters` may do
//! anything in every mode.
//!
//! Roles and bindings are those of the watch cache, as upstream's are those of its informers: a change is in effect
//! some milliseconds after its write. Until all have been read for the first time, requests wait.

mod forbidden;
mod mode;
mod rbac;

use setpoint_kinds::Identity;
use setpoint_proto::ApiError;
use setpoint_proto::rbac::PolicyRule;
use setpoint_store::cache::Cache;

use super::Attributes;
pub(in crate::request) use forbidden::error as forbidden;
pub use mode::Mode;
pub(crate) use rbac::Rbac;

/// The reason of every decision of [`Mode::AlwaysAllow`].
const ALLOWED: &str =
    "authorization is off: every request is allowed, whatever roles and bindings exist";
/// The reason of every decision of [`Mode::AlwaysDeny`].
const DENIED: &str = "Everything is forbidden.";
/// The group whose members may do anything.
pub(in crate::request) const MASTERS: &str = "system:masters";

/// Decides what users may do.
#[derive(Default)]
pub(crate) struct Authorizer {
    /// In the order in which they are asked; empty as if [`Mode::AlwaysAllow`] were there.
    modes: Vec<Mode>,
    rbac: Option<Rbac>,
}

/// A decision, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// May be empty.
    pub(crate) reason: String,
}

/// The rules that apply to a user.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) rules: Vec<PolicyRule>,
    /// Why there may be more.
    pub(crate) error: Option<String>,
}

impl Authorizer {
    /// Returns an authorizer, which follows the roles and bindings of a cache if a mode needs them.
    ///
    /// # Panics
    /// With [`Mode::Rbac`] outside of a Tokio runtime.
    pub(crate) fn new(modes: &[Mode], cache: &Cache) -> Self {
        Self {
            rbac: modes.contains(&Mode::Rbac).then(|| Rbac::follow(cache)),
            modes: modes.to_vec(),
        }
    }

    /// Returns the roles and bindings; `None` if no mode needs them.
    pub(crate) fn rbac(&self) -> Option<&Rbac> {
        self.rbac.as_ref()
    }

    /// Authorizes a request. It is called once for each request and, as upstream, once more with another verb for an
    /// update or an apply that creates its object, and for a connection.
    ///
    /// # Errors
    /// `Forbidden` if the user may not do that, `ServiceUnavailable` if the roles have not been read in time.
    pub(crate) async fn authorize(
        &self,
        user: &Identity,
        attributes: &Attributes,
    ) -> Result<(), ApiError> {
        if let Some(rbac) = &self.rbac {
            rbac.complete().await?;
        }
        let refused = |reason: String| forbidden(user, attributes, &reason);
        self.check(user, attributes).map_err(refused)
    }

    /// Decides about a request. Roles that were not read yet grant nothing.
    pub(crate) fn decide(&self, user: &Identity, attributes: &Attributes) -> Decision {
        match self.check(user, attributes) {
            Ok(()) => Decision {
                allowed: true,
                reason: self.reason(user, attributes),
            },
            Err(reason) => Decision {
                allowed: false,
                reason,
            },
        }
    }

    /// Returns `Ok` if the user may do that, without a reason, which most requests need not have.
    ///
    /// # Errors
    /// The reasons of all modes.
    fn check(&self, user: &Identity, attributes: &Attributes) -> Result<(), String> {
        let is_allowed = |mode: &Mode| match mode {
            Mode::AlwaysAllow => true,
            Mode::AlwaysDeny => false,
            Mode::Rbac => self
                .rbac
                .as_ref()
                .is_some_and(|rbac| rbac.allows(user, attributes)),
        };
        if self.modes.is_empty() || is_master(user) || self.modes.iter().any(is_allowed) {
            return Ok(());
        }
        let reasons = self.modes.iter().map(|mode| match mode {
            Mode::AlwaysDeny => DENIED.to_owned(),
            _ => self.reason_of_rbac(user, attributes),
        });
        let reasons: Vec<_> = reasons.filter(|reason| !reason.is_empty()).collect();
        Err(reasons.join("\n"))
    }

    /// Returns the reason of the mode that allows a request.
    fn reason(&self, user: &Identity, attributes: &Attributes) -> String {
        let mut modes = self.modes.iter();
        let by_rbac = || {
            let rbac = self.rbac.as_ref()?;
            rbac.allows(user, attributes)
                .then(|| rbac.reason(user, attributes))
        };
        match self.modes.first() {
            None | Some(Mode::AlwaysAllow) => ALLOWED.into(),
            Some(_) if is_master(user) => String::new(),
            Some(_) => modes
                .find_map(|mode| match mode {
                    Mode::AlwaysAllow => Some(ALLOWED.into()),
                    Mode::AlwaysDeny => None,
                    Mode::Rbac => by_rbac(),
                })
                .unwrap_or_default(),
        }
    }

    fn reason_of_rbac(&self, user: &Identity, attributes: &Attributes) -> String {
        let rbac = self.rbac.as_ref();
        rbac.map(|rbac| rbac.reason(user, attributes))
            .unwrap_or_default()
    }

    /// Returns the rules of all modes for a user in a namespace.
    pub(crate) fn rules_for(&self, user: &Identity, namespace: &str) -> Rules {
        let mut found = Rules::default();
        if self.modes.is_empty() || self.modes.contains(&Mode::AlwaysAllow) {
            found.rules.extend(everything());
        }
        if let Some(rbac) = &self.rbac {
            let of_rbac = rbac.rules_for(user, namespace);
            found.rules.extend(of_rbac.rules);
            found.error = of_rbac.error;
        }
        found
    }
}

/// Returns the rules that allow everything.
pub(crate) fn everything() -> [PolicyRule; 2] {
    let any = || vec!["*".to_owned()];
    let of_resources = PolicyRule {
        verbs: any(),
        api_groups: any(),
        resources: any(),
        ..PolicyRule::default()
    };
    let of_paths = PolicyRule {
        verbs: any(),
        non_resource_urls: any(),
        ..PolicyRule::default()
    };
    [of_resources, of_paths]
}

/// Returns whether the user may do anything, in every mode (upstream: the authorizer of privileged groups).
pub(crate) fn is_master(user: &Identity) -> bool {
    user.groups.iter().any(|group| group == MASTERS)
}

#[cfg(test)]
mod tests;
