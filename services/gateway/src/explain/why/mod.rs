//! The state of an object and what it waits for, explained from records; nothing is guessed.
//!
//! ```text
//! store:     the object, its versions with their writers, its Events
//! replicas:  every replica that announced itself ─▶ its decision log, within a deadline
//! waits:     all of these ─▶ what the object waits for (pure)
//! ```
//! Every gateway gives the same answer, because it reads what it did not see itself. Of other objects, the answer has
//! only those that its reader may read: owners of owners and reconciles of objects by `get`, Pods and Events by `list`,
//! verdicts about nodes by `get`.

mod events;
mod managers;
mod objects;
mod reader;
mod replicas;
mod waits;

use jiff::Timestamp;
use setpoint_proto::setpoint::WhyResponse;
use setpoint_proto::{ApiError, Cause};

use crate::registry::{Registry, RequestContext, Target};
use objects::{Related, Subject};
use reader::Reader;
use waits::Records;

/// The number of versions that are searched for the last writer of each field.
const VERSIONS: usize = 40;

/// Explains an object.
///
/// # Errors
/// `NotFound` if there are no records of such an object; those of a store that cannot be reached.
pub async fn explain(
    registry: &Registry,
    context: &RequestContext,
    target: &Target,
    now: Timestamp,
) -> Result<WhyResponse, ApiError> {
    let history = registry.history(context, target, VERSIONS).await?;
    let subject = Subject::new(target, &history)?;
    let reader = Reader { registry, context };
    let related = Related::find(reader, target, &subject).await?;
    let mut observers = replicas::observers(registry, &related, now).await?;
    reader.restrict(&mut observers);
    subject.check_known(target.kind, &observers)?;
    let meta = subject.meta().cloned().unwrap_or_default();
    let (events, flaps) = events::about(reader, target, &meta.uid).await?;
    let records = Records {
        object: subject.object.filter(|_| subject.exists),
        subject: subject.reference,
        pods: related.pods,
        observers,
        now_ns: i64::try_from(now.as_nanosecond()).unwrap_or(i64::MAX),
    };
    Ok(WhyResponse {
        kind: target.kind.kind.clone(),
        exists: subject.exists,
        uid: meta.uid,
        revision: subject.revision,
        generation: meta.generation,
        owners: related.owners,
        cause: subject.cause,
        managers: managers::of(&history)?,
        waits: waits::waits(&records),
        events,
        flaps,
        subject: Some(records.subject),
        observers: records.observers,
    })
}

/// Returns the id of the trace that a write belongs to; empty if it was not traced.
pub fn trace_id(cause: &Cause) -> String {
    let id = cause.trace_id();
    id.map(|id| id.to_string()).unwrap_or_default()
}
