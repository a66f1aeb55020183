//! A runtime for tests, whose containers run whatever the test says.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_model::time::after;
use setpoint_proto::core::{Container as Spec, ResourceRequirements};
use setpoint_runtime::streams::dial;
use setpoint_runtime::{
    Connection, Container, ContainerConfig, ContainerId, Error, ImageOrigin, Inputs, Log,
    LogOptions, Output, Outputs, Reading, Runtime, Sandbox, SandboxConfig, State, Streams, Volume,
};

use crate::pod::handler::Target;

/// A runtime with one Pod and one running container.
#[derive(Clone)]
pub struct Fake(Arc<Mutex<Inner>>);

struct Inner {
    sandbox: Sandbox,
    /// The output and the exit code of each command; `None` for one that never ends.
    answer: Option<(String, i32)>,
    commands: Vec<Vec<String>>,
    stops: Vec<Duration>,
}

pub fn id() -> ContainerId {
    ContainerId {
        uid: "uid-1".into(),
        name: "web".into(),
        attempt: 0,
    }
}

impl Fake {
    /// Returns a runtime whose container runs since now.
    pub fn new() -> Self {
        let config = SandboxConfig {
            namespace: "default".into(),
            name: "web".into(),
            uid: "uid-1".into(),
            ip: Ipv4Addr::LOCALHOST,
            ..SandboxConfig::default()
        };
        let started = ContainerConfig {
            id: id(),
            ..ContainerConfig::default()
        };
        let mut container = Container::starting(&started);
        container.state = State::Running {
            since: Timestamp::now(),
            stopping: None,
        };
        let sandbox = Sandbox {
            config,
            id: String::new(),
            ready: true,
            containers: vec![container],
        };
        Self(Arc::new(Mutex::new(Inner {
            sandbox,
            answer: Some((String::new(), 0)),
            commands: Vec::new(),
            stops: Vec::new(),
        })))
    }

    /// Sets the output and the exit code of all further commands.
    pub fn answer(&self, output: &str, code: i32) {
        self.0.lock().answer = Some((output.to_owned(), code));
    }

    /// Lets all further commands run forever.
    pub fn hang(&self) {
        self.0.lock().answer = None;
    }

    /// Returns the number of commands that have begun.
    pub fn commands(&self) -> usize {
        self.0.lock().commands.len()
    }

    /// Returns the grace periods with which the container was asked to stop.
    pub fn stops(&self) -> Vec<Duration> {
        self.0.lock().stops.clone()
    }

    pub fn target(&self, container: Spec) -> Target<Self> {
        Target {
            runtime: self.clone(),
            id: id(),
            container: Arc::new(container),
            ip: Ipv4Addr::LOCALHOST,
        }
    }
}

impl Runtime for Fake {
    const NAME: &'static str = "fake";
    const RUNS_COMMANDS: bool = true;
    const RUNS_IMAGES: bool = true;

    fn mounts_volumes(&self) -> bool {
        true
    }

    fn sandboxes(&self, _: &Key) -> Vec<Sandbox> {
        vec![self.0.lock().sandbox.clone()]
    }

    fn state(&self, id: &ContainerId) -> Option<State> {
        let inner = self.0.lock();
        let mut containers = inner.sandbox.containers.iter();
        let found = containers.find(|container| container.id == *id);
        found.map(|container| container.state.clone())
    }

    fn pods(&self) -> Vec<Key> {
        Vec::new()
    }

    async fn run_sandbox(&self, _: SandboxConfig) -> Result<(), Error> {
        Ok(())
    }

    async fn update_volumes(&self, _: &str, _: Vec<Volume>) -> Result<(), Error> {
        Ok(())
    }

    async fn start(&self, _: ContainerConfig) -> Result<ImageOrigin, Error> {
        Ok(ImageOrigin::Unused)
    }

    async fn resize(&self, _: &ContainerId, _: &ResourceRequirements) -> Result<(), Error> {
        Ok(())
    }

    async fn stop(&self, _: &ContainerId, grace: Duration) -> Result<(), Error> {
        let mut inner = self.0.lock();
        inner.stops.push(grace);
        let by = after(Timestamp::now(), grace);
        for container in &mut inner.sandbox.containers {
            if let State::Running { stopping, .. } = &mut container.state {
                *stopping = Some(by);
            }
        }
        Ok(())
    }

    async fn log(&self, _: &ContainerId, _: &LogOptions) -> Result<Log, Error> {
        Ok(futures::stream::empty().boxed())
    }

    async fn exec(
        &self,
        _: &ContainerId,
        command: &[String],
        _: Streams,
        _: Inputs,
    ) -> Result<Outputs, Error> {
        let mut inner = self.0.lock();
        inner.commands.push(command.to_vec());
        Ok(match inner.answer.clone() {
            None => futures::stream::pending().boxed(),
            Some((output, code)) => {
                let items = [Output::Stdout(output.into()), Output::Exit(code)];
                futures::stream::iter(items.map(Ok)).boxed()
            }
        })
    }

    async fn attach(&self, _: &ContainerId, _: Streams, _: Inputs) -> Result<Outputs, Error> {
        Ok(futures::stream::empty().boxed())
    }

    async fn connect(&self, _: &str, port: u16) -> Result<Connection, Error> {
        dial((Ipv4Addr::LOCALHOST, port).into()).await
    }

    async fn readings(&self) -> HashMap<ContainerId, Reading> {
        HashMap::new()
    }

    async fn remove(&self, _: &ContainerId) -> Result<(), Error> {
        Ok(())
    }

    async fn remove_sandbox(&self, _: &str) -> Result<(), Error> {
        Ok(())
    }
}
