//! The use of a bootstrap token: once, for the client certificate of the one node that it was made for. Pure.
//!
//! ```text
//! pending ─▶ the token is claimed for the request ─▶ Approved ─▶ certificate ─▶ the token is removed
//!         └─ of another node, used, expired, removed ─▶ Denied
//! ```
//! Each arrow is one write that depends on what was observed only: a crash after any of them is continued.
//!
//! The token is not removed at once, since the agent reads its certificate by it: once the Node has been reported as
//! ready, which needs the certificate, and after [`READING`] at the latest.

use std::time::Duration;

use jiff::Timestamp;
use setpoint_model::bootstrap_token::{JOINING_AGENTS, USER_PREFIX};
use setpoint_model::users::NODE_PREFIX;
use setpoint_proto::certificates::CertificateSigningRequestSpec;

use crate::plan::{LAG, World};
use crate::{Request, TokenView};

/// The time that an agent has to read its certificate.
pub(crate) const READING: Duration = Duration::from_secs(60);

/// The next step of a pending request by a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The token is for this request, and has to be claimed for it.
    Claim,
    /// The token was claimed for this request.
    Approve,
    /// The request is not what the token was made for.
    Deny(String),
    /// The token may be too new to be in the cache.
    Wait(Duration),
}

/// Returns the id of the token by which an agent asks that joins; `None` for other users, whose requests are decided as
/// upstream's.
pub(crate) fn token_id(spec: &CertificateSigningRequestSpec) -> Option<&str> {
    let is_joining = spec.groups.iter().any(|group| group == JOINING_AGENTS);
    spec.username
        .strip_prefix(USER_PREFIX)
        .filter(|_| is_joining)
}

/// Decides on a pending request by a token, which asks for what was parsed.
pub(crate) fn decide(world: &World, parsed: Result<&Request, &String>) -> Verdict {
    let verdict = match usable(world) {
        Err(verdict) => verdict,
        Ok(token) => checked(token, &world.request.meta.uid, parsed).unwrap_or_else(Verdict::Deny),
    };
    match &world.node {
        // Two machines of one name would take the Node from each other.
        Some(node) if verdict == Verdict::Claim && node.ready.is_some() => Verdict::Deny(format!(
            "a Node with name {:?} and status \"Ready\" already exists in the cluster. You must delete the existing Node \
             or change the name of this new joining Node",
            node.meta.key.name
        )),
        _ => verdict,
    }
}

/// Returns the token of the request, which has not expired.
fn usable(world: &World) -> Result<&TokenView, Verdict> {
    let deny = |why: &str| Verdict::Deny(why.to_owned());
    let Some(token) = world.token.as_deref().filter(|token| !token.meta.deleting) else {
        return Err(match world.lag() {
            Some(left) => Verdict::Wait(left),
            None => deny("the bootstrap token was deleted"),
        });
    };
    match token.expires {
        Some(time) if time <= world.now => Err(deny("the bootstrap token has expired")),
        _ => Ok(token),
    }
}

/// Returns what follows for the request with this uid.
///
/// # Errors
/// Why it is denied.
fn checked(
    token: &TokenView,
    uid: &str,
    parsed: Result<&Request, &String>,
) -> Result<Verdict, String> {
    let request = parsed.map_err(|problem| format!("the signer refuses it: {problem}"))?;
    let Some(node) = &token.node else {
        return Err("the bootstrap token brings in no node".to_owned());
    };
    if request.common_name.strip_prefix(NODE_PREFIX) != Some(node) {
        let asked = &request.common_name;
        return Err(format!(
            "the bootstrap token is for the node {node:?}, not for {asked:?}"
        ));
    }
    match token.used_by.as_deref() {
        None => Ok(Verdict::Claim),
        Some(user) if user == uid => Ok(Verdict::Approve),
        Some(_) => Err("the bootstrap token was used".to_owned()),
    }
}

/// Returns the time until the token of a request with a certificate is removed, zero if that is due; `None` if it has
/// no such token.
pub(crate) fn removal(world: &World) -> Option<Duration> {
    let request = &world.request;
    let token = world
        .token
        .as_deref()
        .filter(|token| !token.meta.deleting)?;
    if token.used_by.as_ref() != Some(&request.meta.uid) {
        return None;
    }
    let approved = request.condition("Approved");
    let approved = approved.and_then(|approved| approved.last_update_time.timestamp());
    let approved = approved.unwrap_or(Timestamp::MIN);
    let ready = world.node.as_ref().and_then(|node| node.ready);
    // Times of objects have whole seconds, and an agent takes less from one to the other.
    if ready.is_some_and(|ready| ready >= approved) {
        return Some(Duration::ZERO);
    }
    let end = approved.saturating_add(READING).unwrap_or(Timestamp::MAX);
    Some(Duration::try_from(end.duration_since(world.now)).unwrap_or_default())
}

impl World {
    /// Returns the time that is left for the cache to get what was written before the request; `None` if it has it.
    pub(crate) fn lag(&self) -> Option<Duration> {
        let created = self.request.meta.created?;
        let end = created.saturating_add(LAG).unwrap_or(Timestamp::MAX);
        let left = Duration::try_from(end.duration_since(self.now)).ok()?;
        Some(left).filter(|left| !left.is_zero())
    }
}
