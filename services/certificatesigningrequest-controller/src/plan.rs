//! Plan: approves, signs or removes a request.

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::Plan;

use crate::signer::is_of_itself;
use crate::{Request, RequestView, Signer, cleanup};

/// Everything that a decision depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The request.
    pub request: Arc<RequestView>,
    /// The time.
    pub now: Timestamp,
}

/// A write of the request, which must be the version that was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Approve the request, if its user is allowed to get certificates of nodes, or of itself.
    Approve {
        /// Whether the user is the node.
        of_itself: bool,
    },
    /// Sign the request.
    Sign(Box<Request>),
    /// Write that it cannot be signed, and why.
    Fail(String),
    /// Remove it.
    Delete,
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
    let parsed = || {
        let parsed = Request::parse(&request.spec.request)?;
        signer.check(&parsed, &request.spec.usages)?;
        Ok::<_, String>(parsed)
    };
    if request.is_approved() && !request.is_issued {
        match parsed() {
            Ok(parsed) => plan.step(Action::Sign(Box::new(parsed)), "it is approved"),
            Err(problem) => plan.step(Action::Fail(problem), "the signer does not allow it"),
        }
    } else if request.is_pending() && signer == Signer::KubeletClient {
        // One that the signer would refuse is left for a person to look at.
        if let Ok(parsed) = parsed() {
            let of_itself = is_of_itself(&parsed, &request.spec.username);
            let because = "it is for the client certificate of a kubelet";
            plan.step(Action::Approve { of_itself }, because);
        }
    }
    plan
}
