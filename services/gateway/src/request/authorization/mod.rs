//! Authorization: whether a user may do what a request asks for.
//!
//! The modes are asked in their order, and one that allows a request decides. Members of `system:masters` may do
//! anything in every mode.
//!
//! The mode `Node` ([`node`]) is for nodes and their agents, the mode `RBAC` for everybody.
//!
//! Roles and bindings are those of the watch cache, as upstream's are those of its informers: a change is in effect
//! some milliseconds after its write. Until all have been read for the first time, requests wait.

mod forbidden;
mod mode;
mod node;
mod rbac;
pub(in crate::request) mod record;

use setpoint_kinds::Identity;
use setpoint_model::users::ADMINISTRATORS;
use setpoint_proto::rbac::PolicyRule;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::cache::Cache;

use super::{Attributes, audit};
pub(in crate::request) use forbidden::error as forbidden;
pub use mode::Mode;
use node::Nodes;
pub(crate) use node::node_of;
pub(crate) use rbac::Rbac;

/// The reason of every decision of [`Mode::AlwaysAllow`].
const ALLOWED: &str =
    "authorization is off: every request is allowed, whatever roles and bindings exist";
/// The reason of every decision of [`Mode::AlwaysDeny`].
const DENIED: &str = "Everything is forbidden.";
/// The error of a question for all rules of a node.
const UNRESOLVED: &str = "node authorizer does not support user rule resolution";

/// Decides what users may do.
#[derive(Default)]
pub(crate) struct Authorizer {
    /// In the order in which they are asked; empty as if [`Mode::AlwaysAllow`] were there.
    modes: Vec<Mode>,
    nodes: Option<Nodes>,
    rbac: Option<Rbac>,
}

/// A decision, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// May be empty.
    pub(crate) reason: String,
}

impl Decision {
    fn allowed(reason: impl Into<String>) -> Self {
        Self {
            allowed: true,
            reason: reason.into(),
        }
    }

    fn denied(reason: impl Into<String>) -> Self {
        Self {
            allowed: false,
            reason: reason.into(),
        }
    }
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
            nodes: modes.contains(&Mode::Node).then(|| Nodes::new(cache)),
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
        let checked = self.check(user, attributes).await;
        match &checked {
            Ok(()) => record::allowed(),
            Err(error) if error.reason == Reason::Forbidden => record::refused(user, attributes),
            Err(_) => record::failed(),
        }
        audit::decided(&checked, || self.decide(user, attributes).reason);
        checked
    }

    /// Authorizes a part of a question, which is not counted.
    ///
    /// # Errors
    /// As [`Self::authorize`].
    pub(in crate::request) async fn check(
        &self,
        user: &Identity,
        attributes: &Attributes,
    ) -> Result<(), ApiError> {
        if self.permits(user, attributes).await? {
            return Ok(());
        }
        let reason = self.decide(user, attributes).reason;
        Err(forbidden::error(user, attributes, &reason))
    }

    /// Returns whether a user may do something, once the roles have been read. What a node may do follows from its
    /// Pods: before it is refused, the cache has to have the newest ones.
    async fn permits(&self, user: &Identity, attributes: &Attributes) -> Result<bool, ApiError> {
        if let Some(rbac) = &self.rbac {
            rbac.complete().await?;
        }
        if self.allows(user, attributes) {
            return Ok(true);
        }
        match &self.nodes {
            Some(nodes) if Nodes::depends_on_cache(user, attributes) => {
                nodes.reach_newest().await?;
                Ok(self.allows(user, attributes))
            }
            _ => Ok(false),
        }
    }

    /// Returns whether a user may do something. Roles that were not read yet grant nothing.
    pub(crate) fn allows(&self, user: &Identity, attributes: &Attributes) -> bool {
        self.is_open() || is_master(user) || {
            let mut modes = self.modes.iter();
            modes.any(|mode| match mode {
                Mode::AlwaysAllow => true,
                Mode::AlwaysDeny => false,
                Mode::Node => {
                    let nodes = self.nodes.as_ref();
                    nodes.is_some_and(|nodes| nodes.allows(user, attributes))
                }
                Mode::Rbac => {
                    let rbac = self.rbac.as_ref();
                    rbac.is_some_and(|rbac| rbac.allows(user, attributes))
                }
            })
        }
    }

    /// Decides about a request as [`Self::allows`] does, with the reason: that of the first mode that allows it, or
    /// those of all.
    pub(crate) fn decide(&self, user: &Identity, attributes: &Attributes) -> Decision {
        if self.is_open() {
            return Decision::allowed(ALLOWED);
        }
        if is_master(user) {
            return Decision::allowed("");
        }
        let mut reasons = Vec::new();
        for mode in &self.modes {
            let decision = self.decide_by(*mode, user, attributes);
            if decision.allowed {
                return decision;
            }
            reasons.push(decision.reason);
        }
        reasons.retain(|reason| !reason.is_empty());
        Decision::denied(reasons.join("\n"))
    }

    /// Returns whether the first mode allows everything.
    fn is_open(&self) -> bool {
        *self.modes.first().unwrap_or(&Mode::AlwaysAllow) == Mode::AlwaysAllow
    }

    fn decide_by(&self, mode: Mode, user: &Identity, attributes: &Attributes) -> Decision {
        match mode {
            Mode::AlwaysAllow => Decision::allowed(ALLOWED),
            Mode::AlwaysDeny => Decision::denied(DENIED),
            Mode::Node => match &self.nodes {
                Some(nodes) if nodes.allows(user, attributes) => Decision::allowed(""),
                _ => Decision::denied(Nodes::reason(user, attributes)),
            },
            Mode::Rbac => {
                let rbac = self.rbac.as_ref();
                let decision = rbac.map(|rbac| rbac.decide(user, attributes));
                decision.unwrap_or_else(|| Decision::denied(""))
            }
        }
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
        if self.nodes.is_some() && node_of(user).is_some() {
            found.error = Some(match found.error {
                None => UNRESOLVED.into(),
                Some(error) => format!("[{UNRESOLVED}, {error}]"),
            });
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
    user.groups.iter().any(|group| group == ADMINISTRATORS)
}

#[cfg(test)]
mod tests;
