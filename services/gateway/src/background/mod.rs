//! Work that no request asks for: each task restarted after a panic, and reported when it keeps failing.

mod cache_differences;
mod garbage_collector;
mod system_namespaces;
mod ttl;

use std::sync::Arc;
use std::time::Duration;

use setpoint_task::supervise;
use tokio_util::sync::CancellationToken;

use crate::registry::Registry;

/// As Kubernetes names it.
const NAMESPACES: &str = "poststarthook/start-system-namespaces-controller";

impl Registry {
    /// Creates the namespaces that everyone expects; then, until `shutdown`, deletes what a deleted owner leaves behind,
    /// empties namespaces that end, and forgets old Events.
    ///
    /// An Event is kept for `event_ttl` after its last write. `report` makes, of a task's name, who is told how that task
    /// fares: for the namespaces, `Ok` once they are there.
    pub async fn run_background<R>(
        self: Arc<Self>,
        event_ttl: Duration,
        shutdown: CancellationToken,
        report: impl Fn(&'static str) -> R,
    ) where
        R: Fn(Result<(), String>),
    {
        let namespaces = report(NAMESPACES);
        let (collector, expiry) = (report("garbage-collector"), report("expiry"));
        let work = async {
            self.cache().synced().await;
            let failing = |state: Result<(), String>| {
                if state.is_err() {
                    namespaces(state);
                }
            };
            supervise("namespaces", failing, || self.create_namespaces()).await;
            namespaces(Ok(()));
            tokio::join!(
                supervise("garbage-collector", collector, || garbage_collector::run(
                    &self
                )),
                supervise("expiry", expiry, || ttl::run(&self, event_ttl)),
            );
        };
        shutdown.run_until_cancelled(work).await;
    }
}
