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
mod record;

use setpoint_kinds::Identity;
use setpoint_model::users::ADMINISTRATORS;
use setpoint_proto::ApiError;
use setpoint_proto::rbac::PolicyRule;
use setpoint_store::cache::Cache;

use super::Attributes;
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

/// The source of a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grant {
    /// Membership of the group that may do anything.
    Masters,
    Mode(Mode),
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

    /// Returns whether nodes are users whose rights are limited to their own Pods.
    pub(crate) fn limits_nodes(&self) -> bool {
        self.nodes.is_some()
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
        match self.permits(user, attributes).await {
            Ok(true) => {
                record::allowed();
                Ok(())
            }
            Ok(false) => {
                record::refused(user, attributes);
                let reason = self.reasons(user, attributes);
                Err(forbidden::error(user, attributes, &reason))
            }
            Err(error) => {
                record::failed();
                Err(error)
            }
        }
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
        self.grant(user, attributes).is_some()
    }

    /// Decides about a request as [`Self::allows`] does, with the reason.
    pub(crate) fn decide(&self, user: &Identity, attributes: &Attributes) -> Decision {
        let grant = self.grant(user, attributes);
        Decision {
            allowed: grant.is_some(),
            reason: match grant {
                Some(Grant::Masters) => String::new(),
                Some(Grant::Mode(mode)) => self.reason(mode, user, attributes),
                None => self.reasons(user, attributes),
            },
        }
    }

    /// Returns what allows a request: the first mode that does.
    fn grant(&self, user: &Identity, attributes: &Attributes) -> Option<Grant> {
        let first = self.modes.first().unwrap_or(&Mode::AlwaysAllow);
        if *first == Mode::AlwaysAllow {
            return Some(Grant::Mode(Mode::AlwaysAllow));
        }
        if is_master(user) {
            return Some(Grant::Masters);
        }
        let mut modes = self.modes.iter().copied();
        let allowing = modes.find(|mode| match mode {
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
        });
        allowing.map(Grant::Mode)
    }

    /// Returns the reasons of all modes, none of which allows a request.
    fn reasons(&self, user: &Identity, attributes: &Attributes) -> String {
        let reasons = self.modes.iter().map(|mode| match mode {
            Mode::Node => Nodes::reason(user, attributes),
            mode => self.reason(*mode, user, attributes),
        });
        let reasons: Vec<_> = reasons.filter(|reason| !reason.is_empty()).collect();
        reasons.join("\n")
    }

    /// Returns the reason of the decision of a mode. The mode `Node` has none for what it allows.
    fn reason(&self, mode: Mode, user: &Identity, attributes: &Attributes) -> String {
        match mode {
            Mode::AlwaysAllow => ALLOWED.into(),
            Mode::AlwaysDeny => DENIED.into(),
            Mode::Node => String::new(),
            Mode::Rbac => {
                let rbac = self.rbac.as_ref();
                let reason = rbac.map(|rbac| rbac.reason(user, attributes));
                reason.unwrap_or_default()
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
        if self.limits_nodes() && node_of(user).is_some() {
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
