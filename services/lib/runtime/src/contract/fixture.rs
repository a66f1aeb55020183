//! A runtime under test, with the means to start, observe and clean up containers.

use std::any::Any;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use setpoint_model::Key;
use setpoint_proto::core::ResourceRequirements;
use setpoint_proto::meta::Quantity;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::{
    Container, ContainerConfig, ContainerId, Exit, Input, LogOptions, Output, Runtime, Sandbox,
    SandboxConfig, State, Streams, Volume, VolumeKind, Wake,
};

/// An image with a few programs of Debian's static busybox. Its default command sleeps until SIGTERM.
pub const IMAGE: &str = "setpoint-test/busybox:3";
/// Upper bound on every wait, even on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Polling interval where no notification exists.
pub const POLL_INTERVAL: Duration = Duration::from_millis(5);

thread_local! {
    static UID: String = format!(
        "5be0b8a3-{}-{}",
        std::process::id(),
        PODS.fetch_add(1, Ordering::Relaxed)
    );
}
static PODS: AtomicUsize = AtomicUsize::new(0);

/// Returns the uid of this test's Pod. All tests share one engine; each runs in a thread of its own.
pub fn uid() -> String {
    UID.with(Clone::clone)
}

/// The streams of a command without input.
pub const ALL_OUTPUT: Streams = Streams {
    stdin: false,
    stdout: true,
    stderr: true,
    tty: false,
};

/// The machine that a suite runs on.
#[derive(Clone, Copy)]
pub struct Machine {
    /// Returns a port of the loopback that no other test is given.
    pub free_port: fn() -> u16,
    /// Returns the number of processes that have a word among their arguments.
    pub processes_with: fn(&str) -> usize,
}

/// The wakes of a runtime.
#[derive(Clone, Default)]
pub struct Woken(Arc<Notify>);

impl Woken {
    /// Returns the function to open a runtime with.
    pub fn wake(&self) -> Wake {
        let notify = Arc::clone(&self.0);
        Arc::new(move |_: &Key| notify.notify_one())
    }
}

/// A runtime under test.
pub struct Fixture<R> {
    /// The runtime.
    pub runtime: R,
    /// The machine of the runtime.
    pub machine: Machine,
    woken: Woken,
    /// Dropped after the runtime: its directories, or what removes its containers.
    kept: Box<dyn Any + Send + Sync>,
}

/// Returns the key of the Pod under test.
pub fn pod() -> Key {
    Key::new("default", "web")
}

/// Returns the configuration of the Pod's sandbox.
pub fn sandbox() -> SandboxConfig {
    SandboxConfig {
        namespace: "default".into(),
        name: "web".into(),
        uid: uid(),
        ip: Ipv4Addr::new(127, 9, 9, 2),
        ..SandboxConfig::default()
    }
}

/// Returns the configuration of a sandbox with these volumes.
pub fn sandbox_with<const N: usize>(volumes: [(&str, VolumeKind); N]) -> SandboxConfig {
    let volume = |(name, kind): (&str, VolumeKind)| Volume {
        name: name.into(),
        kind,
        group: None,
    };
    SandboxConfig {
        volumes: volumes.map(volume).into(),
        ..sandbox()
    }
}

/// Returns the id of an attempt at the container.
pub fn id(attempt: u32) -> ContainerId {
    ContainerId {
        uid: uid(),
        name: "main".into(),
        attempt,
    }
}

/// Returns the configuration of an attempt at the container.
pub fn container(attempt: u32, command: &[&str]) -> ContainerConfig {
    ContainerConfig {
        id: id(attempt),
        image: IMAGE.into(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        env: vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("GREETING".into(), "hello".into()),
        ],
        backoff: Duration::from_secs(10),
        ..ContainerConfig::default()
    }
}

/// Returns the requirements of a container: its requests, then its limits.
pub fn resources(requests: &[(&str, &str)], limits: &[(&str, &str)]) -> ResourceRequirements {
    let list = |amounts: &[(&str, &str)]| {
        let amounts = amounts.iter();
        amounts
            .map(|(name, amount)| ((*name).to_owned(), Quantity::new(*amount)))
            .collect()
    };
    ResourceRequirements {
        requests: list(requests),
        limits: list(limits),
        ..ResourceRequirements::default()
    }
}

impl<R: Runtime> Fixture<R> {
    /// Returns a fixture of a runtime that was opened with the function of `woken`. `kept` is dropped after the
    /// runtime.
    pub fn new(runtime: R, machine: Machine, woken: Woken, kept: impl Any + Send + Sync) -> Self {
        Self {
            runtime,
            machine,
            woken,
            kept: Box::new(kept),
        }
    }

    /// Replaces the runtime by one that is made of it.
    pub fn map<S>(self, made: impl FnOnce(R) -> S) -> Fixture<S> {
        Fixture {
            runtime: made(self.runtime),
            machine: self.machine,
            woken: self.woken,
            kept: self.kept,
        }
    }

    /// Waits until no process of the machine has `word` among its arguments.
    pub async fn wait_until_no_process_has(&self, word: &str) {
        let gone = async {
            while (self.machine.processes_with)(word) > 0 {
                sleep(POLL_INTERVAL).await;
            }
        };
        timeout(TIMEOUT, gone).await.expect("the processes end");
    }

    /// Creates the sandbox, and starts an attempt.
    pub async fn start(&self, attempt: u32, command: &[&str]) {
        self.runtime.run_sandbox(sandbox()).await.unwrap();
        self.runtime
            .start(container(attempt, command))
            .await
            .unwrap();
    }

    /// Returns an attempt as the runtime has it.
    pub fn container(&self, attempt: u32) -> Option<Container> {
        let sandboxes = self.runtime.sandboxes(&pod());
        let mut containers = sandboxes.into_iter().flat_map(|sandbox| sandbox.containers);
        containers.find(|container| container.id == id(attempt))
    }

    /// Waits until the state of an attempt satisfies `wanted`; checks after each wake.
    pub async fn wait_for<T>(&self, attempt: u32, wanted: impl Fn(&State) -> Option<T>) -> T {
        let seen = async {
            loop {
                if let Some(found) = self
                    .container(attempt)
                    .and_then(|found| wanted(&found.state))
                {
                    return found;
                }
                self.woken.0.notified().await;
            }
        };
        let seen = timeout(TIMEOUT, seen).await;
        seen.unwrap_or_else(|_| panic!("still {:?}", self.container(attempt)))
    }

    /// Runs a command in the first attempt to its end; returns its output, its errors and its exit code.
    pub async fn run(
        &self,
        command: &[&str],
        streams: Streams,
        input: &[Input],
    ) -> (String, String, i32) {
        let command: Vec<_> = command.iter().map(|word| (*word).to_owned()).collect();
        let input = futures::stream::iter(input.to_vec());
        let input = match streams.tty {
            // A terminal has no end, and keeps what nobody has read yet.
            true => input.chain(futures::stream::pending()).boxed(),
            false => input.boxed(),
        };
        let outputs = self.runtime.exec(&id(0), &command, streams, input).await;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut outputs = outputs.unwrap();
        let ended = async {
            while let Some(item) = outputs.next().await {
                match item.unwrap() {
                    Output::Stdout(bytes) => stdout.extend_from_slice(&bytes),
                    Output::Stderr(bytes) => stderr.extend_from_slice(&bytes),
                    Output::Exit(code) => return code,
                }
            }
            panic!("the output ends with an exit code")
        };
        let code = timeout(TIMEOUT, ended).await.expect("the command ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(stdout), text(stderr), code)
    }

    /// Connects to a port of the Pod once something listens there, sends `data`, ends its half of the connection, and
    /// returns the answer.
    pub async fn exchange(&self, port: u16, data: &str) -> String {
        let connected = async {
            loop {
                match self.runtime.connect(&uid(), port).await {
                    Ok(connection) => return connection,
                    Err(_) => sleep(POLL_INTERVAL).await,
                }
            }
        };
        let mut connection = timeout(TIMEOUT, connected).await.unwrap();
        let (mut read, mut write) = tokio::io::split(connection.as_mut());
        let upload = async {
            write.write_all(data.as_bytes()).await.unwrap();
            write.shutdown().await.unwrap();
        };
        let mut answer = String::new();
        let both = async { tokio::join!(upload, read.read_to_string(&mut answer)) };
        timeout(TIMEOUT, both).await.unwrap().1.unwrap();
        answer
    }

    /// Waits until a sandbox satisfies `wanted`.
    pub async fn sandbox_is(&self, wanted: impl Fn(&Sandbox) -> bool) {
        let seen = async {
            while !self.runtime.sandboxes(&pod()).iter().any(&wanted) {
                self.changed().await;
            }
        };
        timeout(TIMEOUT, seen).await.expect("the sandbox changes");
    }

    /// Waits for the next wake.
    pub async fn changed(&self) {
        self.woken.0.notified().await;
    }

    /// Returns the log of an attempt.
    pub async fn log(&self, attempt: u32, options: LogOptions) -> String {
        let log = self.runtime.log(&id(attempt), &options).await.unwrap();
        let pieces = timeout(TIMEOUT, log.try_collect::<Vec<_>>()).await;
        String::from_utf8(pieces.expect("the log ends").unwrap().concat()).unwrap()
    }

    /// Follows the log of an attempt until it has this many lines.
    pub async fn read_lines(&self, attempt: u32, lines: usize) -> String {
        let options = LogOptions {
            follow: true,
            ..LogOptions::default()
        };
        let mut log = self.runtime.log(&id(attempt), &options).await.unwrap();
        let mut output = String::new();
        while output.lines().count() < lines {
            let piece = timeout(TIMEOUT, log.try_next()).await;
            let piece = piece.expect("a chunk arrives").unwrap();
            output += std::str::from_utf8(&piece.expect("the log continues")).unwrap();
        }
        output
    }

    /// Waits until an attempt runs.
    pub async fn running(&self, attempt: u32) {
        self.wait_for(attempt, |state| {
            matches!(state, State::Running { .. }).then_some(())
        })
        .await;
    }

    /// Waits until an attempt has exited.
    pub async fn exited(&self, attempt: u32) -> Exit {
        let exit = |state: &State| match state {
            State::Exited(exit) => Some(exit.clone()),
            _ => None,
        };
        self.wait_for(attempt, exit).await
    }

    /// Waits until a container has ended for this reason, which an engine may tell after the end.
    pub async fn exited_because(&self, attempt: u32, reason: &str) -> Exit {
        let exit = |state: &State| match state {
            State::Exited(exit) if exit.reason() == reason => Some(exit.clone()),
            _ => None,
        };
        self.wait_for(attempt, exit).await
    }

    /// Stops all containers and waits for their end.
    pub async fn clean_up(&self) {
        let sandboxes = self.runtime.sandboxes(&pod());
        for container in sandboxes.iter().flat_map(|sandbox| sandbox.alive()) {
            self.runtime
                .stop(&container.id, Duration::ZERO)
                .await
                .unwrap();
            self.exited(container.id.attempt).await;
        }
    }
}
