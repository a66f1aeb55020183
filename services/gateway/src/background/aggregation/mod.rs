//! Checks whether the servers of APIServices are available, and fetches their documents (upstream: the availability
//! controller and the discovery manager of kube-aggregator).
//!
//! ```text
//! APIServices, Services, EndpointSlices ─▶ Schedule ─▶ check: Service, endpoints (`verdict`, pure) ─▶ probe ─▶ documents ─▶ condition
//! ```
//! Every gateway runs it, as it needs the documents itself, and as each may reach a server or not. A condition is
//! written only if it says something else.

mod check;
mod schedule;
mod verdict;

use std::sync::Arc;

use futures::stream::{FuturesUnordered, select_all};
use futures::{FutureExt as _, StreamExt as _};
use setpoint_codec::kind_of;
use setpoint_model::Key;
use setpoint_model::endpointslice::SERVICE_NAME;
use setpoint_proto::ApiError;
use setpoint_proto::apiregistration::ApiService;
use setpoint_proto::core::Service;
use setpoint_proto::discovery::EndpointSlice;
use tokio::time::{Instant, sleep_until};

use super::attempts::repeat;
use crate::aggregation::Remote;
use crate::registry::{Event, Filter, Registry, Start, Watch, WatchSpec};
use schedule::Schedule;

/// The maximum number of events that are acted upon at once.
const EVENTS: usize = 1024;
/// The number of servers that are checked concurrently.
const CONCURRENCY: usize = 8;

/// Checks servers until dropped.
pub(crate) async fn run(registry: &Registry) {
    repeat("aggregation", || follow(registry)).await;
}

/// Checks each server when its APIService, Service or endpoints change and at intervals, until a watch ends.
async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let watches = [
        watch::<ApiService>(registry).await?,
        watch::<Service>(registry).await?,
        watch::<EndpointSlice>(registry).await?,
    ];
    let mut events = select_all(watches).ready_chunks(EVENTS);
    let mut schedule = Schedule::default();
    let mut running = FuturesUnordered::new();
    loop {
        let remotes = registry.aggregator().all(registry).await?;
        schedule.follow(&remotes, Instant::now());
        let room = CONCURRENCY - running.len();
        for remote in schedule.take_due(Instant::now(), room) {
            running.push(check(registry, remote).boxed());
        }
        let next = schedule.next_due().filter(|_| running.len() < CONCURRENCY);
        tokio::select! {
            Some(events) = events.next() => {
                for event in events {
                    touch(&mut schedule, &event?);
                }
            }
            Some((name, is_passed)) = running.next() => schedule.checked(&name, is_passed, Instant::now()),
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
    }
}

async fn watch<T: setpoint_proto::Resource + 'static>(
    registry: &Registry,
) -> Result<Watch, ApiError> {
    let spec = WatchSpec {
        filter: Filter::all(kind_of::<T>(), ""),
        start: Start::Now,
        bookmarks: false,
    };
    registry.cache().watch(spec).await
}

/// Makes the checks due that an event may concern. Those of new and changed APIServices are due anyway.
fn touch(schedule: &mut Schedule, event: &Event) {
    let (object, now) = (&event.object, Instant::now());
    if object.kind == kind_of::<Service>() {
        schedule.touch(&object.key, now);
    }
    if object.kind == kind_of::<EndpointSlice>()
        && let Some(service) = object.labels().get(SERVICE_NAME)
    {
        schedule.touch(&Key::new(&object.key.namespace, service), now);
    }
}

/// Checks a server. Returns the name of the APIService, and whether nothing is to be repeated soon.
async fn check(registry: &Registry, remote: Arc<Remote>) -> (String, bool) {
    let checked = check::check(registry, &remote).await;
    let is_passed = checked.unwrap_or_else(|error| {
        tracing::debug!(name = remote.name, %error, "checking the server of an APIService failed");
        false
    });
    (remote.name.clone(), is_passed)
}
