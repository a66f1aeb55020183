//! The listeners of health checks.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddrV4, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use setpoint_model::Key;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};

use super::HealthCheck;
use super::connection::{State, serve};
use crate::CheckReport;

/// The largest number of connections of all health checks; further ones are closed.
const CONNECTIONS: usize = 128;
/// The wait after an error of the system, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// An open health check.
struct Open {
    state: Arc<State>,
    _task: AbortOnDropHandle<()>,
}

/// The health checks of all Services.
pub struct Servers {
    checks: BTreeMap<Key, HealthCheck>,
    open: BTreeMap<(Key, SocketAddrV4), Open>,
    /// Those that could not be opened, each of which was reported.
    failed: BTreeSet<(Key, SocketAddrV4)>,
    healthy: Arc<AtomicBool>,
    connections: Arc<Semaphore>,
    report: CheckReport,
}

impl Servers {
    /// Returns none. Those that cannot be opened are reported once.
    pub fn new(report: CheckReport) -> Self {
        Self {
            checks: BTreeMap::new(),
            open: BTreeMap::new(),
            failed: BTreeSet::new(),
            healthy: Arc::new(AtomicBool::new(false)),
            connections: Arc::new(Semaphore::new(CONNECTIONS)),
            report,
        }
    }

    /// Sets whether everything is programmed.
    pub fn set_healthy(&self, healthy: bool) {
        self.healthy.store(healthy, Ordering::Relaxed);
    }

    /// Replaces the health checks of some Services: `None` for those that have none. One that stays keeps its listener.
    pub fn apply(&mut self, changes: BTreeMap<Key, Option<HealthCheck>>) {
        // What goes is closed first: its port may be another's now.
        let keeps = |(key, at): &(Key, SocketAddrV4)| match changes.get(key) {
            Some(Some(check)) => check.endpoints.contains_key(at),
            Some(None) => false,
            None => true,
        };
        self.open.retain(|place, _| keeps(place));
        self.failed.retain(keeps);
        for (key, check) in changes {
            match check {
                Some(check) => {
                    self.set(&key, &check);
                    self.checks.insert(key, check);
                }
                None => _ = self.checks.remove(&key),
            }
        }
    }

    /// Tries to open those that could not be opened.
    pub fn retry(&mut self) {
        let failed: BTreeSet<_> = self.failed.iter().map(|(key, _)| key.clone()).collect();
        for key in failed {
            if let Some(check) = self.checks.get(&key).cloned() {
                self.set(&key, &check);
            }
        }
    }

    fn set(&mut self, key: &Key, check: &HealthCheck) {
        for (at, count) in &check.endpoints {
            let place = (key.clone(), *at);
            if let Some(open) = self.open.get(&place) {
                open.state.endpoints.store(*count, Ordering::Relaxed);
                continue;
            }
            match self.listen(key, *at, *count) {
                Ok(open) => {
                    self.failed.remove(&place);
                    self.open.insert(place, open);
                }
                Err(error) if self.failed.insert(place) => {
                    warn!(service = %key, %at, %error, "a health check does not start, and is tried again");
                    (self.report)(key, *at, &error);
                }
                Err(error) => debug!(service = %key, %at, %error, "a health check does not start"),
            }
        }
    }

    fn listen(&self, key: &Key, at: SocketAddrV4, count: usize) -> io::Result<Open> {
        let listener = StdListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let state = Arc::new(State {
            service: key.clone(),
            endpoints: AtomicUsize::new(count),
            healthy: Arc::clone(&self.healthy),
        });
        let accept = accept(listener, Arc::clone(&state), Arc::clone(&self.connections));
        info!(service = %key, %at, "a health check listens");
        Ok(Open {
            state,
            _task: AbortOnDropHandle::new(tokio::spawn(accept)),
        })
    }
}

/// Accepts connections until it is dropped. Those that are accepted end by themselves.
async fn accept(listener: TcpListener, state: Arc<State>, connections: Arc<Semaphore>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else {
                    continue;
                };
                let state = Arc::clone(&state);
                tokio::spawn(async move {
                    serve(stream, state).await;
                    drop(permit);
                });
            }
            Err(error) => {
                debug!(%error, "no connection of a health check is accepted");
                sleep(PAUSE).await;
            }
        }
    }
}
