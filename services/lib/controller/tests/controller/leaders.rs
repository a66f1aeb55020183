//! Replicas that only lead, and a record that asserts that no two of them lead at once.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_controller::{Client, Fence, Term, election};
use setpoint_proto::coordination::Lease;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::server::{Server, eventually, namespace, soon};

/// The default duration of a Lease.
pub const LEASE: Duration = Duration::from_secs(15);

/// The replicas that lead now, and the fences of all terms.
#[derive(Clone, Default)]
pub struct Leaders {
    present: Arc<Mutex<Vec<String>>>,
    /// The replicas that led at once. Recorded, since a panic of the work would only end its term.
    crowd: Arc<Mutex<Vec<String>>>,
    pub fences: Arc<Mutex<Vec<Fence>>>,
}

/// A replica that leads; dropped when its work ends.
pub struct Worker(Leaders, String);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.present.lock().retain(|name| *name != self.1);
    }
}

impl Leaders {
    pub fn enter(&self, name: &str, fence: Fence) -> Worker {
        let mut present = self.present.lock();
        present.push(name.to_owned());
        if present.len() > 1 {
            self.crowd.lock().clone_from(&present);
        }
        self.fences.lock().push(fence);
        Worker(self.clone(), name.to_owned())
    }

    pub fn leader(&self) -> Option<String> {
        let crowd = self.crowd.lock();
        assert!(crowd.is_empty(), "{crowd:?} led at once");
        self.present.lock().first().cloned()
    }
}

pub struct Replica {
    leaders: Leaders,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Replica {
    /// Starts a replica whose work ends only on shutdown and ignores the loss of its term, which is the hardest case.
    pub fn start(gateway: Client, leaders: &Leaders, name: &'static str) -> Self {
        let shutdown = CancellationToken::new();
        let (stop, present) = (shutdown.clone(), leaders.clone());
        let leaders = leaders.clone();
        let task = tokio::spawn(async move {
            let work = |term: Term| {
                let (stop, present) = (stop.clone(), present.clone());
                async move {
                    let _worker = present.enter(name, term.fence);
                    stop.cancelled().await;
                }
            };
            let settings = election::Settings::default();
            let run = election::run(gateway, settings, "test", name, stop.clone(), work);
            run.await.unwrap();
        });
        Self {
            leaders,
            shutdown,
            task,
        }
    }

    pub async fn stop(self) -> Duration {
        let begin = Instant::now();
        self.shutdown.cancel();
        soon(self.task).await.unwrap();
        self.leaders.leader();
        begin.elapsed()
    }
}

pub async fn server() -> Server {
    let server = Server::start().await;
    server.put(&namespace("setpoint-system"));
    server
}

pub fn lease(server: &Server) -> Lease {
    server.get("setpoint-system", "test").unwrap()
}

pub async fn until_leads(leaders: &Leaders, name: &str) {
    eventually(name, async || leaders.leader().as_deref() == Some(name)).await;
}
