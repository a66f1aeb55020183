//! Plan: approves, signs or removes a request.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::Plan;
use setpoint_model::users::NODE_PREFIX;

use crate::joining::{self, Verdict};
use crate::signer::is_of_itself;
use crate::{NodeView, Request, RequestView, Signer, TokenView, cleanup, serving};

/// The age of a request from which on caches have what was written before it.
pub(crate) const LAG: Duration = Duration::from_secs(10);

/// Everything that a decision depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The request.
    pub request: Arc<RequestView>,
    /// The bootstrap token of its user, if an agent joins by it.
    pub token: Option<Arc<TokenView>>,
    /// The Node that it asks a certificate for.
    pub node: Option<Arc<NodeView>>,
    /// The IPs that this Node may not claim.
    pub taken: BTreeSet<IpAddr>,
    /// The time.
    pub now: Timestamp,
}

/// A write of an object, which must be the version that was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Approve the request.
    Approve(Approval),
    /// Deny it, and say why.
    Deny(String),
    /// Claim the bootstrap token for the request: no other one gets a certificate by it.
    Claim,
    /// Create the Node with this name.
    CreateNode(String),
    /// Sign the request.
    Sign(Box<Request>),
    /// Write that it cannot be signed, and why.
    Fail(String),
    /// Remove the bootstrap token that the certificate was issued for.
    RemoveToken,
    /// Remove the request.
    Delete,
}

/// The reason for which a request is approved without a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Its user may create client certificates of nodes; if not, it is not approved.
    NodeClient,
    /// It is a node, which may create its own; if not, it is not approved.
    OwnNodeClient,
    /// The bootstrap token of its user is claimed for it.
    Token,
    /// It is a node that asks for its own names and addresses only.
    Serving,
}

/// Plans for one request. Those for signers of others are removed only.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    let request = &world.request;
    if request.meta.deleting {
        return plan;
    }
    match cleanup::due(request, world.now) {
        Some((wait, because)) if wait.is_zero() => {
            plan.step(Action::Delete, because);
            return plan;
        }
        Some((wait, _)) => plan.look_again(wait),
        None => {}
    }
    let Some(signer) = Signer::named(&request.spec.signer_name) else {
        return plan;
    };
    if request.is_issued {
        remove_token(world, &mut plan);
    } else if request.is_approved() {
        sign(world, signer, &mut plan);
    } else if request.is_pending() {
        approve(world, signer, &mut plan);
    }
    plan
}

fn parsed(world: &World, signer: Signer) -> Result<Request, String> {
    let spec = &world.request.spec;
    let parsed = Request::parse(&spec.request)?;
    signer.check(&parsed, &spec.usages)?;
    Ok(parsed)
}

fn approve(world: &World, signer: Signer, plan: &mut Plan<Action>) {
    let spec = &world.request.spec;
    match signer {
        Signer::KubeletClient if joining::token_id(spec).is_some() => join(world, plan),
        // One that the signer would refuse is left for a person to look at.
        Signer::KubeletClient => {
            if let Ok(parsed) = parsed(world, signer) {
                let approval = match is_of_itself(&parsed, &spec.username) {
                    true => Approval::OwnNodeClient,
                    false => Approval::NodeClient,
                };
                let because = "it is for the client certificate of a kubelet";
                plan.step(Action::Approve(approval), because);
            }
        }
        Signer::KubeletServing => {
            let parsed = parsed(world, signer);
            if parsed.is_ok_and(|parsed| serving::is_allowed(world, &parsed)) {
                let because = "a node asks for its own names and addresses";
                plan.step(Action::Approve(Approval::Serving), because);
            }
        }
        Signer::ApiClient | Signer::LegacyUnknown => {}
    }
}

fn join(world: &World, plan: &mut Plan<Action>) {
    let parsed = parsed(world, Signer::KubeletClient);
    match joining::decide(world, parsed.as_ref()) {
        Verdict::Claim => plan.step(Action::Claim, "the token is for this node, and not used"),
        Verdict::Approve => {
            let because = "the token was claimed for it";
            plan.step(Action::Approve(Approval::Token), because);
        }
        Verdict::Deny(why) => plan.step(Action::Deny(why), "the token is not for it"),
        Verdict::Wait(left) => plan.look_again(left),
    }
}

fn sign(world: &World, signer: Signer, plan: &mut Plan<Action>) {
    let signed = match parsed(world, signer) {
        Ok(parsed) if signer == Signer::KubeletClient => identified(world, parsed),
        parsed => parsed.map(|parsed| Some(Action::Sign(Box::new(parsed)))),
    };
    match signed {
        Ok(Some(action)) => plan.step(action, "it is approved"),
        Ok(None) => world
            .lag()
            .into_iter()
            .for_each(|left| plan.look_again(left)),
        Err(problem) => plan.step(Action::Fail(problem), "the signer does not allow it"),
    }
}

/// Returns the next step to a client certificate of a node, which has the uid of its Node: with the Node, the
/// certificate ends. `None` if the Node may be too new to be in the cache.
///
/// # Errors
/// Why there is no certificate.
fn identified(world: &World, mut parsed: Request) -> Result<Option<Action>, String> {
    let spec = &world.request.spec;
    let name = parsed.common_name.strip_prefix(NODE_PREFIX);
    let name = name.unwrap_or_default().to_owned();
    let deleted = || format!("the Node {name:?} was deleted");
    match &world.node {
        _ if name.is_empty() => Err("subject common name has no name of a node".to_owned()),
        Some(node) if !is_of_itself(&parsed, &spec.username) || node.is(&spec.uid) => {
            parsed.identify(&node.meta.uid);
            Ok(Some(Action::Sign(Box::new(parsed))))
        }
        Some(_) => Err(deleted()),
        None if !is_of_itself(&parsed, &spec.username) => Ok(Some(Action::CreateNode(name))),
        None if world.lag().is_some() => Ok(None),
        None => Err(deleted()),
    }
}

fn remove_token(world: &World, plan: &mut Plan<Action>) {
    match joining::removal(world) {
        Some(wait) if wait.is_zero() => plan.step(Action::RemoveToken, "it was used"),
        Some(wait) => plan.look_again(wait),
        None => {}
    }
}
