//! Type-checks validating policies, and writes the result to their status (upstream: the validatingadmissionpolicy-status-controller).
//!
//! Every gateway runs it; the first write for a generation wins.

use std::time::Duration;

use futures::StreamExt as _;
use prost::Message as _;
use setpoint_codec::kind_of;
use setpoint_proto::admissionregistration::{TypeChecking, ValidatingAdmissionPolicy};
use setpoint_proto::{ApiError, EventType, Reason};
use tokio::time::sleep;

use crate::admission::type_warnings;
use crate::heavy::heavy;
use crate::registry::{
    AtLeast, Filter, Registry, RequestContext, Start, Target, WatchSpec, errors,
};

/// The delay before the watch is restarted.
const RESTART_DELAY: Duration = Duration::from_secs(1);
/// The manager of its writes.
const CONTROLLER: &str = "validatingadmissionpolicy-status";

/// Checks policies until dropped.
pub(crate) async fn run(registry: &Registry) {
    loop {
        if let Err(error) = follow(registry).await {
            tracing::debug!(%error, "checking the types of policies failed; trying again");
        }
        sleep(RESTART_DELAY).await;
    }
}

async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let spec = WatchSpec {
        filter: Filter::all(kind_of::<ValidatingAdmissionPolicy>(), ""),
        start: Start::Initial(AtLeast::Any),
        bookmarks: false,
    };
    let mut events = registry.cache().watch(spec).await?;
    while let Some(event) = events.next().await {
        let event = event?;
        if event.r#type == EventType::Deleted || event.r#type == EventType::Bookmark {
            continue;
        }
        let policy = ValidatingAdmissionPolicy::decode(event.object.raw.as_ref());
        check(registry, errors::readable(policy)?).await?;
    }
    Ok(())
}

/// Checks a policy whose spec has changed since it was checked last.
async fn check(registry: &Registry, mut policy: ValidatingAdmissionPolicy) -> Result<(), ApiError> {
    let generation = policy.metadata.generation;
    if generation <= policy.status.observed_generation {
        return Ok(());
    }
    let kinds = registry.cache().kinds();
    let expression_warnings = heavy(usize::MAX, || type_warnings(&policy.spec, kinds)).await;
    policy.status.observed_generation = generation;
    policy.status.type_checking = Some(TypeChecking {
        expression_warnings,
    });
    let kind = kind_of::<ValidatingAdmissionPolicy>();
    let target = Target::new(kind, "", &policy.metadata.name, "status")?;
    let context = RequestContext::default().by(CONTROLLER);
    let reported = registry.report_status(&context, &target, Box::new(policy));
    match reported.await {
        // A newer version of the policy follows, or its deletion.
        Err(error) if ![Reason::Conflict, Reason::NotFound].contains(&error.reason) => Err(error),
        _ => Ok(()),
    }
}
