//! Keeps the rules of aggregated ClusterRoles those of the roles that they select (upstream: the
//! clusterrole-aggregation-controller).
//!
//! Every gateway runs it; their writes agree.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use prost::Message as _;
use setpoint_codec::kind_of;
use setpoint_model::Key;
use setpoint_proto::rbac::ClusterRole;
use setpoint_proto::{ApiError, EventType, Reason};
use setpoint_rbac::aggregate;

use super::attempts::{Attempts, repeat};
use crate::registry::{
    AtLeast, Event, Filter, Registry, RequestContext, Start, Target, WatchSpec, errors,
};

/// The manager of its writes.
const CONTROLLER: &str = "clusterrole-aggregation-controller";
/// The maximum number of events that are acted upon at once.
const EVENTS: usize = 1024;

/// Aggregates roles until dropped.
pub(crate) async fn run(registry: &Registry) {
    repeat("role-aggregation", || follow(registry)).await;
}

/// Aggregates all roles whenever one changes, until the watch ends.
async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let spec = WatchSpec {
        filter: Filter::all(kind_of::<ClusterRole>(), ""),
        start: Start::Initial(AtLeast::Any),
        bookmarks: true,
    };
    // Without a role that cannot be read, its permissions would be taken from all who have them by aggregation.
    let events = registry.cache().watch_complete(spec).await?;
    let mut events = events.ready_chunks(EVENTS);
    let (mut roles, mut attempts) = (BTreeMap::new(), Attempts::default());
    let mut is_complete = false;
    loop {
        tokio::select! {
            Some(events) = events.next() => for event in events {
                let event = event?;
                is_complete |= event.initial_events_end;
                keep(&mut roles, &event)?;
            },
            () = attempts.next_due() => {}
            else => return Ok(()),
        }
        if is_complete {
            aggregate_all(registry, &roles, &mut attempts).await;
        }
    }
}

fn keep(roles: &mut BTreeMap<String, ClusterRole>, event: &Event) -> Result<(), ApiError> {
    let name = &event.object.key.name;
    match event.r#type {
        EventType::Bookmark => {}
        EventType::Deleted => drop(roles.remove(name)),
        _ => {
            let role = errors::readable(ClusterRole::decode(event.object.raw.as_ref()))?;
            roles.insert(name.clone(), role);
        }
    }
    Ok(())
}

/// Writes the roles whose rules are not those of the roles that they select.
async fn aggregate_all(
    registry: &Registry,
    roles: &BTreeMap<String, ClusterRole>,
    attempts: &mut Attempts,
) {
    let all: Vec<_> = roles.values().collect();
    for (name, role) in roles {
        let rules = aggregate(role, &all).filter(|rules| *rules != role.rules);
        let Some(rules) = rules.filter(|_| attempts.may_try(name)) else {
            continue;
        };
        let changed = ClusterRole {
            rules,
            ..role.clone()
        };
        let written = write(registry, changed).await;
        attempts.tried(name, written.is_ok());
        if let Err(error) = written {
            tracing::debug!(name, %error, "aggregating a role failed; trying again");
        }
    }
    attempts.retain(|name| roles.contains_key(name));
}

async fn write(registry: &Registry, role: ClusterRole) -> Result<(), ApiError> {
    let target = Target::whole(kind_of::<ClusterRole>(), &Key::of(&role.metadata));
    let context = RequestContext::of_server().by(CONTROLLER);
    match registry.update(&context, &target, Box::new(role)).await {
        // A newer version of the role follows, or its deletion.
        Err(error) if ![Reason::Conflict, Reason::NotFound].contains(&error.reason) => Err(error),
        _ => Ok(()),
    }
}
