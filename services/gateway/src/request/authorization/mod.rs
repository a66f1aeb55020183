//! Authorization: whether a user may do what a request asks for.
//!
//! The modes are asked in their order, and one that allows a request decides. Members of `system:masters` may do
//! anything in every mode.
//!
//! The mode `Node` ([`node`]) is for nodes and their agents, the mode `RBAC` for everybody. With a configuration file,
//! webhooks ([`webhook`]) may stand among them, which may also refuse a request for good.
//!
//! Roles and bindings are those of the watch cache, as upstream's are those of its informers: a change is in effect
//! some milliseconds after its write. Until all have been read for the first time, requests wait.

mod chain;
mod forbidden;
mod mode;
mod node;
mod rbac;
pub(in crate::request) mod record;
mod webhook;

use std::path::Path;

use parking_lot::RwLock;
pub use setpoint_apiserver_config::authorization::Configuration;
use setpoint_kinds::Identity;
use setpoint_model::users::ADMINISTRATORS;
use setpoint_proto::ApiError;
use setpoint_proto::rbac::PolicyRule;
use setpoint_store::cache::Cache;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use super::{Attributes, audit};
use crate::errors::internal;
use crate::settings_file;
pub(crate) use chain::check as check_configuration;
use chain::{Chain, Member};
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
    chain: RwLock<Chain>,
    nodes: Option<Nodes>,
    rbac: Option<Rbac>,
    /// Whether everything was allowed at the start.
    began_open: bool,
}

/// A decision, with its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// Whether no other authorizer was to be asked.
    pub(crate) denied: bool,
    /// May be empty.
    pub(crate) reason: String,
    /// Why authorizers could not decide; may be empty.
    pub(crate) error: String,
}

impl Decision {
    fn allowed(reason: impl Into<String>) -> Self {
        Self {
            allowed: true,
            reason: reason.into(),
            ..Self::default()
        }
    }

    fn denied(reason: impl Into<String>) -> Self {
        Self {
            denied: true,
            reason: reason.into(),
            ..Self::default()
        }
    }

    /// Returns that a request is not allowed, unless another authorizer allows it.
    fn undecided(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            ..Self::default()
        }
    }

    const fn is_final(&self) -> bool {
        self.allowed || self.denied
    }

    /// Adds what another authorizer could not decide.
    fn add(&mut self, other: Self) {
        for (text, more) in [
            (&mut self.reason, other.reason),
            (&mut self.error, other.error),
        ] {
            if !text.is_empty() && !more.is_empty() {
                text.push('\n');
            }
            text.push_str(&more);
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
        Self::of(Chain::of_modes(modes), cache)
    }

    /// Returns the authorizer of a configuration.
    ///
    /// # Errors
    /// If the kubeconfig file of a webhook cannot be read or is wrong, with the path of its field.
    ///
    /// # Panics
    /// With the type RBAC outside of a Tokio runtime.
    pub(crate) fn configured(configuration: Configuration, cache: &Cache) -> Result<Self, String> {
        Ok(Self::of(Chain::of_configuration(configuration)?, cache))
    }

    fn of(chain: Chain, cache: &Cache) -> Self {
        Self {
            nodes: chain.has(Mode::Node).then(|| Nodes::new(cache)),
            rbac: chain.has(Mode::Rbac).then(|| Rbac::follow(cache)),
            began_open: chain.is_open() || chain.has(Mode::AlwaysAllow),
            chain: RwLock::new(chain),
        }
    }

    /// Replaces the authorizers.
    ///
    /// # Errors
    /// As [`Self::configured`], and if there is one that was not there at the start. What was in force stays so.
    pub(crate) fn reload(&self, configuration: Configuration) -> Result<(), String> {
        let chain = Chain::of_configuration(configuration)?;
        for (mode, name, is_there) in [
            (Mode::Node, "Node", self.nodes.is_some()),
            (Mode::Rbac, "RBAC", self.rbac.is_some()),
            // Where it is, nobody may be anonymous, which is decided at the start.
            (Mode::AlwaysAllow, "AlwaysAllow", self.began_open),
        ] {
            if chain.has(mode) && !is_there {
                return Err(format!(
                    "authorizer type {name} is not allowed if it was not enabled at initial server startup"
                ));
            }
        }
        *self.chain.write() = chain;
        Ok(())
    }

    fn chain(&self) -> Chain {
        self.chain.read().clone()
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
        let outcome = self.outcome(user, attributes).await;
        let checked = match &outcome {
            Ok(outcome) if outcome.allowed => {
                record::allowed();
                Ok(())
            }
            Ok(outcome) => {
                record::refused(user, attributes, outcome.is_denied());
                Err(self.refusal(user, attributes, outcome))
            }
            Err(error) => {
                record::failed();
                Err(error.clone())
            }
        };
        let known = outcome.ok().and_then(|outcome| outcome.decision);
        audit::decided(&checked, || match known {
            Some(decision) => decision.reason,
            None => self.decide_by_modes(&self.chain(), user, attributes).reason,
        });
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
        let outcome = self.outcome(user, attributes).await?;
        match outcome.allowed {
            true => Ok(()),
            false => Err(self.refusal(user, attributes, &outcome)),
        }
    }

    fn refusal(&self, user: &Identity, attributes: &Attributes, outcome: &Outcome) -> ApiError {
        let reason = match &outcome.decision {
            Some(decision) => decision.reason.clone(),
            None => self.decide_by_modes(&self.chain(), user, attributes).reason,
        };
        forbidden::error(user, attributes, &reason)
    }

    /// Returns whether a user may do something, once the roles have been read. What a node may do follows from its
    /// Pods: before it is refused, the cache has to have the newest ones. A request that nothing allows, while a
    /// webhook has failed, has the error of the webhook, as upstream.
    async fn outcome(&self, user: &Identity, attributes: &Attributes) -> Result<Outcome, ApiError> {
        let chain = self.chain();
        if let Some(rbac) = self.rbac.as_ref().filter(|_| chain.has(Mode::Rbac)) {
            rbac.complete().await?;
        }
        let newest = self.nodes.as_ref();
        let newest = newest.filter(|_| Nodes::depends_on_cache(user, attributes));
        if chain.has_webhooks() {
            if let Some(nodes) = newest {
                nodes.reach_newest().await?;
            }
            let decision = self.decide_by_all(&chain, user, attributes).await;
            if !decision.allowed && !decision.error.is_empty() {
                return Err(internal(&decision.error));
            }
            return Ok(decision.into());
        }
        let allows = || self.modes_allow(&chain, user, attributes);
        let mut allowed = allows();
        if let Some(nodes) = newest.filter(|_| !allowed) {
            nodes.reach_newest().await?;
            allowed = allows();
        }
        let decision = None;
        Ok(Outcome { allowed, decision })
    }

    /// Returns whether a user may do something. Roles that were not read yet grant nothing. While webhooks are asked,
    /// the thread waits.
    pub(crate) fn allows(&self, user: &Identity, attributes: &Attributes) -> bool {
        let chain = self.chain();
        match chain.has_webhooks() {
            true => wait_for(self.decide_by_all(&chain, user, attributes)).allowed,
            false => self.modes_allow(&chain, user, attributes),
        }
    }

    /// Decides about a request as [`Self::allows`] does, with the reason: that of the first authorizer that decides, or
    /// those of all.
    pub(crate) fn decide(&self, user: &Identity, attributes: &Attributes) -> Decision {
        let chain = self.chain();
        match chain.has_webhooks() {
            true => wait_for(self.decide_by_all(&chain, user, attributes)),
            false => self.decide_by_modes(&chain, user, attributes),
        }
    }

    /// As [`Self::decide`]; no thread waits.
    pub(crate) async fn decision(&self, user: &Identity, attributes: &Attributes) -> Decision {
        let chain = self.chain();
        self.decide_by_all(&chain, user, attributes).await
    }

    fn modes_allow(&self, chain: &Chain, user: &Identity, attributes: &Attributes) -> bool {
        chain.is_open() || is_master(user) || {
            let mut modes = chain.modes();
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

    fn decide_by_modes(&self, chain: &Chain, user: &Identity, attributes: &Attributes) -> Decision {
        if let Some(decision) = chain.without_question(user) {
            return decision;
        }
        let mut undecided = Decision::default();
        for mode in chain.modes() {
            let decision = self.decide_by(mode, user, attributes);
            if decision.is_final() {
                return decision;
            }
            undecided.add(decision);
        }
        undecided
    }

    async fn decide_by_all(
        &self,
        chain: &Chain,
        user: &Identity,
        attributes: &Attributes,
    ) -> Decision {
        if let Some(decision) = chain.without_question(user) {
            return decision;
        }
        let mut undecided = Decision::default();
        for member in chain.members() {
            let decision = match member {
                Member::Mode(mode) => self.decide_by(*mode, user, attributes),
                Member::Webhook(webhook) => webhook.decide(user, attributes).await,
            };
            if decision.is_final() {
                return decision;
            }
            undecided.add(decision);
        }
        undecided
    }

    fn decide_by(&self, mode: Mode, user: &Identity, attributes: &Attributes) -> Decision {
        match mode {
            Mode::AlwaysAllow => Decision::allowed(ALLOWED),
            Mode::AlwaysDeny => Decision::undecided(DENIED),
            Mode::Node => match &self.nodes {
                Some(nodes) if nodes.allows(user, attributes) => Decision::allowed(""),
                _ => Decision::undecided(Nodes::reason(user, attributes)),
            },
            Mode::Rbac => {
                let rbac = self.rbac.as_ref();
                let decision = rbac.map(|rbac| rbac.decide(user, attributes));
                decision.unwrap_or_default()
            }
        }
    }

    /// Returns the rules of all modes for a user in a namespace.
    pub(crate) fn rules_for(&self, user: &Identity, namespace: &str) -> Rules {
        let mut found = Rules::default();
        let chain = self.chain();
        if chain.is_open() || chain.has(Mode::AlwaysAllow) {
            found.rules.extend(everything());
        }
        if let Some(rbac) = self.rbac.as_ref().filter(|_| chain.has(Mode::Rbac)) {
            let of_rbac = rbac.rules_for(user, namespace);
            found.rules.extend(of_rbac.rules);
            found.error = of_rbac.error;
        }
        let of_node = chain.has(Mode::Node) && node_of(user).is_some();
        let unresolved = [
            (of_node, UNRESOLVED),
            (chain.has_webhooks(), webhook::UNRESOLVED),
        ];
        let unresolved = unresolved.iter().filter(|(is_there, _)| *is_there);
        let errors = unresolved.map(|(_, error)| (*error).to_owned());
        let errors: Vec<String> = errors.chain(found.error).collect();
        found.error = match errors.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("[{}]", several.join(", "))),
        };
        found
    }
}

/// The result of a decision.
struct Outcome {
    allowed: bool,
    /// `None` if only modes were asked, which can be asked for the reason again.
    decision: Option<Decision>,
}

impl Outcome {
    fn is_denied(&self) -> bool {
        self.decision
            .as_ref()
            .is_some_and(|decision| decision.denied)
    }
}

impl From<Decision> for Outcome {
    fn from(decision: Decision) -> Self {
        let allowed = decision.allowed;
        let decision = Some(decision);
        Self { allowed, decision }
    }
}

/// Waits for webhooks where the code cannot: in expressions and checks of admission. Other tasks of the thread go on
/// elsewhere.
fn wait_for(decision: impl Future<Output = Decision>) -> Decision {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => block_in_place(|| Handle::current().block_on(decision)),
        _ => Decision::denied("webhooks cannot be asked by a runtime of one thread"),
    }
}

/// Reads the file of a configuration.
///
/// # Errors
/// If it cannot be read, or is wrong, with the path of each field that is.
pub(crate) fn read_configuration(file: &Path) -> Result<Configuration, String> {
    Configuration::read(&settings_file::read(file)?)
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
