//! Background tasks of the gateway. Each is restarted after a panic, and reports when it keeps failing.

mod cache_differences;
mod garbage_collector;
mod system_objects;
mod ttl;

use std::sync::Arc;
use std::time::Duration;

use setpoint_task::supervise;
use tokio_util::sync::CancellationToken;

use crate::registry::Registry;

/// The name of the health check, as in kube-apiserver.
const NAMESPACES: &str = "poststarthook/start-system-namespaces-controller";

impl Registry {
    /// Creates the initial namespaces and priority classes; then runs the garbage collector and the deletion of expired objects until `shutdown`.
    ///
    /// An Event expires `event_ttl` after its last write. `report` returns, for the name of a task, the callback for the
    /// health of the task; that of the namespaces gets `Ok` once they exist.
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
            supervise("namespaces", failing, || self.create_system_objects()).await;
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
