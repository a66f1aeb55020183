//! Replicas that do nothing but lead, and an office in which there must never be two of them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_controller::{Client, Fence, Term, election};
use setpoint_proto::coordination::Lease;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::server::{Server, eventually, namespace, soon};

/// As long as a Lease lasts unless set otherwise.
pub const LEASE: Duration = Duration::from_secs(15);

/// Who works now, and every fence under which someone did.
#[derive(Clone, Default)]
pub struct Office {
    present: Arc<Mutex<Vec<String>>>,
    /// Those who led at once: seen by whoever asks, since a panic of work only ends a term.
    crowd: Arc<Mutex<Vec<String>>>,
    pub fences: Arc<Mutex<Vec<Fence>>>,
}

/// Leaves the office when its round is dropped.
pub struct Worker(Office, String);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.present.lock().retain(|name| *name != self.1);
    }
}

impl Office {
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
    office: Office,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Replica {
    /// A replica whose work ends only on shutdown, and ignores that its term is lost: the hardest case.
    pub fn start(gateway: Client, office: &Office, name: &'static str) -> Self {
        let shutdown = CancellationToken::new();
        let (stop, present) = (shutdown.clone(), office.clone());
        let office = office.clone();
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
            office,
            shutdown,
            task,
        }
    }

    pub async fn stop(self) -> Duration {
        let begin = Instant::now();
        self.shutdown.cancel();
        soon(self.task).await.unwrap();
        self.office.leader();
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

pub async fn until_leads(office: &Office, name: &str) {
    eventually(name, async || office.leader().as_deref() == Some(name)).await;
}
