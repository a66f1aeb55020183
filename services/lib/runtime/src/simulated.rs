//! A runtime without processes, which allows for thousands of Pods in one agent. Idle containers cost nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_proto::core::ResourceRequirements;
use setpoint_task::catch_panic;

use crate::table::Table;
use crate::{
    Connection, Container, ContainerConfig, ContainerId, Error, Exit, ImageOrigin, Inputs, Log,
    LogOptions, Outputs, Reading, Runtime, Sandbox, SandboxConfig, State, Streams, Volume, Wake,
};

/// Simulated containers. They start after a delay, end as their command says, and stop immediately when asked to.
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
    /// Returns an empty runtime whose containers take `start_delay` to start.
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
        self.shared.table.lock().set_running(id, since);
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
        let pod = self.shared.table.lock().set_exited(id, exit);
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
    const SIMULATES_LOAD: bool = true;

    fn mounts_volumes(&self) -> bool {
        false
    }

    fn sandboxes(&self, pod: &Key) -> Vec<Sandbox> {
        self.shared.table.lock().sandboxes_of(pod)
    }

    fn state(&self, id: &ContainerId) -> Option<State> {
        self.shared.table.lock().state(id)
    }

    fn pods(&self) -> Vec<Key> {
        self.shared.table.lock().pods()
    }

    async fn run_sandbox(&self, config: SandboxConfig) -> Result<(), Error> {
        self.shared.table.lock().add(config);
        Ok(())
    }

    async fn update_volumes(&self, _: &str, _: Vec<Volume>) -> Result<(), Error> {
        Err(Error::Unsupported(
            "this runtime mounts no volumes".to_owned(),
        ))
    }

    async fn start(&self, config: ContainerConfig) -> Result<ImageOrigin, Error> {
        let new = self
            .shared
            .table
            .lock()
            .insert(Container::starting(&config))?;
        let script = Script::of(&config.line());
        if !new {
            return Ok(ImageOrigin::Unused);
        }
        if self.shared.start_delay.is_zero() {
            self.run(&config.id, script);
            return Ok(ImageOrigin::Unused);
        }
        let this = self.clone();
        let start = async move {
            tokio::time::sleep(this.shared.start_delay).await;
            this.run(&config.id, script);
            this.wake(&config.id.uid);
        };
        tokio::spawn(catch_panic("container", start));
        Ok(ImageOrigin::Unused)
    }

    async fn resize(
        &self,
        id: &ContainerId,
        resources: &ResourceRequirements,
    ) -> Result<(), Error> {
        self.shared.table.lock().set_resources(id, resources)
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

    async fn exec(
        &self,
        id: &ContainerId,
        _: &[String],
        _: Streams,
        _: Inputs,
    ) -> Result<Outputs, Error> {
        self.shared.table.lock().running(id)?;
        Err(unsupported("exec"))
    }

    async fn attach(&self, id: &ContainerId, _: Streams, _: Inputs) -> Result<Outputs, Error> {
        self.shared.table.lock().running(id)?;
        Err(unsupported("attach"))
    }

    async fn connect(&self, uid: &str, _: u16) -> Result<Connection, Error> {
        self.shared.table.lock().sandbox(uid)?;
        Err(unsupported("port-forward"))
    }

    async fn readings(&self) -> HashMap<ContainerId, Reading> {
        HashMap::new()
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), Error> {
        self.shared.table.lock().remove(id)
    }

    async fn remove_sandbox(&self, uid: &str) -> Result<(), Error> {
        self.shared.table.lock().remove_sandbox(uid)
    }
}

fn unsupported(what: &str) -> Error {
    Error::Unsupported(format!(
        "{what} is not supported on simulated nodes: no process runs there"
    ))
}

/// The spontaneous end of a simulated container.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Script {
    /// Time from start to end.
    after: Duration,
    /// Exit code.
    code: i32,
}

impl Script {
    /// Derives the end from `true`, `false`, `sleep N` and `sh -c "exit N"`. Any other command runs until it is
    /// stopped.
    fn of(command: &[String]) -> Option<Self> {
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        let exit = |code| {
            Some(Self {
                after: Duration::ZERO,
                code,
            })
        };
        match words.as_slice() {
            ["true"] => exit(0),
            ["false"] => exit(1),
            ["sleep", seconds] => Some(Self {
                after: Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?,
                code: 0,
            }),
            ["sh", "-c", line] => exit(line.strip_prefix("exit ")?.trim().parse().ok()?),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(command: &[&str]) -> Option<(u64, i32)> {
        let command: Vec<_> = command.iter().map(|word| (*word).to_owned()).collect();
        Script::of(&command).map(|script| (script.after.as_secs(), script.code))
    }

    #[test]
    fn a_script_ends_for_known_commands() {
        assert_eq!(script(&["true"]), Some((0, 0)));
        assert_eq!(script(&["false"]), Some((0, 1)));
        assert_eq!(script(&["sleep", "5"]), Some((5, 0)));
        assert_eq!(script(&["sh", "-c", "exit 3"]), Some((0, 3)));
    }

    #[test]
    fn a_script_never_ends_for_other_commands() {
        assert_eq!(script(&[]), None);
        assert_eq!(script(&["sleep", "infinity"]), None);
        assert_eq!(script(&["nginx"]), None);
    }
}
