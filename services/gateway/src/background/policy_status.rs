//! Type-checks validating policies, and writes the result to their status (upstream: the
//! validatingadmissionpolicy-status-controller).
//!
//! Every gateway runs it; the first write for a generation wins.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use prost::Message as _;
use setpoint_codec::kind_of;
use setpoint_kinds::expressions::type_warnings;
use setpoint_proto::admissionregistration::{TypeChecking, ValidatingAdmissionPolicy};
use setpoint_proto::{ApiError, EventType, Reason};

use super::attempts::{Attempts, repeat};
use crate::offload::offload;
use crate::registry::{
    AtLeast, Cached, Filter, Registry, RequestContext, Start, Target, WatchSpec, errors,
};

/// The manager of its writes.
const CONTROLLER: &str = "validatingadmissionpolicy-status";

/// Checks policies until dropped.
pub(crate) async fn run(registry: &Registry) {
    repeat("policy-status", || follow(registry)).await;
}

async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let spec = WatchSpec {
        filter: Filter::all(kind_of::<ValidatingAdmissionPolicy>(), ""),
        start: Start::Initial(AtLeast::Any),
        bookmarks: false,
    };
    let mut events = registry.cache().watch(spec).await?;
    let (mut waiting, mut attempts) = (BTreeMap::new(), Attempts::default());
    loop {
        tokio::select! {
            Some(event) = events.next() => {
                let event = event?;
                let name = event.object.key.name.clone();
                match event.r#type {
                    EventType::Bookmark => {}
                    EventType::Deleted => drop(waiting.remove(&name)),
                    _ => drop(waiting.insert(name, event.object)),
                }
            }
            () = attempts.next_due() => {}
            else => return Ok(()),
        }
        let due = waiting.extract_if(.., |name, _| attempts.may_try(name));
        for (name, policy) in due.collect::<Vec<_>>() {
            let checked = check_read(registry, &policy).await;
            attempts.tried(&name, checked.is_ok());
            if let Err(error) = checked {
                tracing::debug!(name, %error, "checking the types of a policy failed; trying again");
                waiting.insert(name, policy);
            }
        }
        attempts.retain(|name| waiting.contains_key(name));
    }
}

async fn check_read(registry: &Registry, policy: &Cached) -> Result<(), ApiError> {
    let policy = ValidatingAdmissionPolicy::decode(policy.raw.as_ref());
    check(registry, errors::readable(policy)?).await
}

/// Checks a policy whose spec has changed since it was checked last.
async fn check(registry: &Registry, mut policy: ValidatingAdmissionPolicy) -> Result<(), ApiError> {
    let generation = policy.metadata.generation;
    if generation <= policy.status.observed_generation {
        return Ok(());
    }
    let kinds = registry.cache().kinds();
    let expression_warnings = offload(usize::MAX, || type_warnings(&policy.spec, kinds)).await;
    policy.status.observed_generation = generation;
    policy.status.type_checking = Some(TypeChecking {
        expression_warnings,
    });
    let kind = kind_of::<ValidatingAdmissionPolicy>();
    let target = Target::new(kind, "", &policy.metadata.name, "status")?;
    let context = RequestContext::of_server().by(CONTROLLER);
    let reported = registry.report_status(&context, &target, Box::new(policy));
    match reported.await {
        // A newer version of the policy follows, or its deletion.
        Err(error) if ![Reason::Conflict, Reason::NotFound].contains(&error.reason) => Err(error),
        _ => Ok(()),
    }
}
