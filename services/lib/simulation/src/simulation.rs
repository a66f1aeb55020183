//! A simulation: the gateway, and the processes that use it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::StreamExt as _;
use setpoint_controller::Client;
use setpoint_gateway::in_process;
use setpoint_model::Revision;
use setpoint_store::cache::Settings;
use setpoint_store::{Memory, Store as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::faults::Faults;
use crate::process::Process;
use crate::turns::Turns;
use crate::{Entry, Log};

/// The gateway over a store in memory, and the processes that use it. Dropping it ends all of them.
pub struct Simulation {
    store: Memory,
    gateway: Router,
    turns: Turns,
    log: Log,
    processes: BTreeMap<String, Process>,
    _recorder: JoinSet<()>,
}

impl Simulation {
    /// Starts a gateway over an empty store. Must be called in a runtime of one thread whose time is paused.
    pub async fn start() -> Self {
        let (store, log) = (Memory::default(), Log::default());
        let registry = in_process::registry(Arc::new(store.clone()), Settings::default()).await;
        let mut recorder = JoinSet::new();
        recorder.spawn(record(store.clone(), log.clone()));
        Self {
            store,
            gateway: in_process::router(registry),
            turns: Turns::default(),
            log,
            processes: BTreeMap::new(),
            _recorder: recorder,
        }
    }

    /// Returns the log of plans and writes.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns a client of a process that writes as `writer`. A process exists from its first client until it crashes.
    pub fn client(&mut self, process: &str, writer: &str) -> Client {
        self.process(process).client(writer)
    }

    /// Runs a task of a process.
    pub fn spawn(&mut self, process: &str, task: impl Future<Output = ()> + Send + 'static) {
        self.process(process).spawn(task);
    }

    /// Ends a process without notice. Returns whether it existed.
    pub fn kill(&mut self, process: &str) -> bool {
        self.processes.remove(process).is_some()
    }

    /// Changes the faults of a process. Returns whether it exists.
    pub fn set_faults(&mut self, process: &str, change: impl FnOnce(&mut Faults)) -> bool {
        let process = self.processes.get(process);
        process.is_some_and(|process| {
            process.faults.send_modify(change);
            true
        })
    }

    /// Breaks the watches of a process. They resume after the last event unless they have `expired`: then the objects
    /// are listed anew. Returns whether the process exists.
    pub async fn break_watches(&mut self, process: &str, expired: bool) -> bool {
        let now = self.store.revision().await.unwrap();
        self.set_faults(process, |faults| {
            faults.broken += 1;
            if expired {
                faults.expired = now.raw() + 1;
            }
        })
    }

    /// Waits up to `patience` for a write and carries it out. Returns whether there was one.
    pub async fn step(&mut self, patience: Duration) -> bool {
        let stepped = self.turns.next(patience).await;
        let crashed = self
            .processes
            .extract_if(.., |_, process| process.faults.borrow().crashed);
        for (name, _) in crashed {
            self.log.push(Entry::Crashed(name.into()));
        }
        stepped
    }

    /// Carries out writes until there was none for `quiet`, and at most `limit` of them. Returns whether it became
    /// quiet.
    pub async fn settle(&mut self, quiet: Duration, limit: usize) -> bool {
        for _ in 0..limit {
            if !self.step(quiet).await {
                return true;
            }
        }
        false
    }

    /// Carries out writes for some time.
    pub async fn advance(&mut self, by: Duration) {
        let end = Instant::now() + by;
        while Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            self.step(left).await;
        }
        sleep_until(end).await;
    }

    fn process(&mut self, name: &str) -> &mut Process {
        let (gateway, turns, log) = (&self.gateway, &self.turns, &self.log);
        let new = || Process::new(name, gateway.clone(), turns.clone(), log.clone());
        self.processes.entry(name.to_owned()).or_insert_with(new)
    }
}

/// Appends each change of the store to the log.
async fn record(store: Memory, log: Log) {
    let mut batches = store.watch(Revision::from_raw(1));
    while let Some(Ok(batch)) = batches.next().await {
        log.record(&store, batch).await;
    }
}
