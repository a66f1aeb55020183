//! Why an object is as it is, and what it waits for: put together from recorded facts, with nothing guessed.
//!
//! ```text
//! store:     the object, its versions (who wrote what), its Events
//! presence:  who is there ─▶ each is asked for its rounds, and has a moment to answer
//! pure:      facts ─▶ what it waits for
//! ```
//! Any gateway can answer: what it has not seen itself it asks for.

mod facts;
mod happenings;
mod managers;
mod observers;
mod pod;
mod waits;

use jiff::Timestamp;
use setpoint_proto::setpoint::WhyResponse;
use setpoint_proto::{ApiError, Cause};

use crate::kinds;
use crate::registry::{Registry, RequestContext, Target};
use facts::{Found, Related};
use waits::Facts;

/// So many versions are looked through for who wrote which field.
const VERSIONS: usize = 40;

/// Answers why.
///
/// # Errors
/// `NotFound` when nothing is known of such an object; those of a store that cannot be reached.
pub async fn explain(
    registry: &Registry,
    context: &RequestContext,
    target: &Target,
    now: Timestamp,
) -> Result<WhyResponse, ApiError> {
    let history = registry.history(context, target, VERSIONS).await?;
    let found = Found::of(target, &history)?;
    let related = Related::of(registry, target, &found).await?;
    let observers = observers::ask(registry, &related, now).await?;
    let told = happenings::of(registry, target, &found).await?;
    let facts = Facts {
        subject: found.subject.clone(),
        role: kinds::of(target.kind).role(),
        object: found.json.clone().filter(|_| found.exists),
        pods: related.pods,
        observers,
        now_ns: i64::try_from(now.as_nanosecond()).unwrap_or(i64::MAX),
    };
    found.expect_something(&facts.observers)?;
    Ok(WhyResponse {
        kind: target.kind.kind.clone(),
        exists: found.exists,
        uid: found.uid,
        revision: found.revision,
        generation: found.generation,
        owners: related.owners,
        cause: found.cause,
        managers: managers::of(&history)?,
        waits: waits::waits(&facts),
        events: told.happenings,
        flaps: told.flaps,
        subject: Some(facts.subject),
        observers: facts.observers,
    })
}

/// The trace that a write belongs to; empty where nobody traced.
pub fn trace_id(cause: &Cause) -> String {
    let id = cause.trace_id();
    id.map(|id| id.to_string()).unwrap_or_default()
}
