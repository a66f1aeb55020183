//! Containers that only pretend: thousands of Pods in one process, none of which costs anything while it idles.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_task::catch_panic;

use super::script::Script;
use super::table::Table;
use super::{
    Container, ContainerConfig, ContainerId, Error, Exit, Log, LogOptions, Origin, Runtime,
    Sandbox, SandboxConfig, State, Wake,
};

/// Fake containers. They start after a delay, run as their [`Script`] says, and stop at once when asked to.
#[derive(Clone)]
pub struct Simulated {
    shared: Arc<Shared>,
}

struct Shared {
    table: Mutex<Table>,
    start_delay: Duration,
    wake: Wake,
}

impl Simulated {
    /// An empty runtime whose containers take `start_delay` to start.
    pub fn new(start_delay: Duration, wake: Wake) -> Self {
        let table = Mutex::default();
        Self {
            shared: Arc::new(Shared {
                table,
                start_delay,
                wake,
            }),
        }
    }

    fn run(&self, id: &ContainerId, script: Option<Script>) {
        let since = Timestamp::now();
        self.shared.table.lock().started(id, since);
        match script {
            None => {}
            Some(script) if script.after.is_zero() => {
                self.exit(id, Exit::new(script.code, since, since));
            }
            Some(script) => {
                let (this, id) = (self.clone(), id.clone());
                let end = async move {
                    tokio::time::sleep(script.after).await;
                    this.exit(&id, Exit::new(script.code, since, Timestamp::now()));
                };
                tokio::spawn(catch_panic("container", end));
            }
        }
    }

    fn exit(&self, id: &ContainerId, exit: Exit) {
        let pod = self.shared.table.lock().exited(id, exit);
        if let Some(pod) = pod {
            (self.shared.wake)(&pod);
        }
    }

    fn wake(&self, uid: &str) {
        let pod = self.shared.table.lock().key(uid);
        if let Some(pod) = pod {
            (self.shared.wake)(&pod);
        }
    }
}

impl Runtime for Simulated {
    const NAME: &'static str = "simulated";
    const RUNS_COMMANDS: bool = false;
    const RUNS_IMAGES: bool = false;

    fn sandboxes(&self, pod: &Key) -> Vec<Sandbox> {
        self.shared.table.lock().of(pod)
    }

    fn pods(&self) -> Vec<Key> {
        self.shared.table.lock().pods()
    }

    async fn run_sandbox(&self, config: SandboxConfig) -> Result<(), Error> {
        self.shared.table.lock().add(config);
        Ok(())
    }

    async fn start(&self, config: ContainerConfig) -> Result<Origin, Error> {
        let new = self
            .shared
            .table
            .lock()
            .insert(Container::starting(&config))?;
        let script = Script::of(&config.line());
        if !new {
            return Ok(Origin::Nowhere);
        }
        if self.shared.start_delay.is_zero() {
            self.run(&config.id, script);
            return Ok(Origin::Nowhere);
        }
        let this = self.clone();
        let start = async move {
            tokio::time::sleep(this.shared.start_delay).await;
            this.run(&config.id, script);
            this.wake(&config.id.uid);
        };
        tokio::spawn(catch_panic("container", start));
        Ok(Origin::Nowhere)
    }

    async fn stop(&self, id: &ContainerId, _grace: Duration) -> Result<(), Error> {
        let now = Timestamp::now();
        let started = match self.shared.table.lock().container(id)?.state {
            State::Running { since, .. } => since,
            _ => now,
        };
        self.exit(id, Exit::new(0, started, now));
        Ok(())
    }

    async fn log(&self, id: &ContainerId, _: &LogOptions) -> Result<Log, Error> {
        self.shared.table.lock().container(id)?;
        Ok(futures::stream::empty().boxed())
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), Error> {
        self.shared.table.lock().remove(id)
    }

    async fn remove_sandbox(&self, uid: &str) -> Result<(), Error> {
        self.shared.table.lock().remove_sandbox(uid)
    }
}
