//! Restarts of the engine: an engine of the test's own, since others use the machine's.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use setpoint_runtime::contract::{IMAGE, POLL_INTERVAL, TIMEOUT, uid};
use setpoint_runtime::docker::Settings;
use setpoint_runtime::{Runtime as _, State};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::first_sandbox;
use super::fixture::{fixture_with, import, settings};

/// A Docker engine with a directory, a socket and a network namespace of its own, so that it leaves the interfaces of
/// others alone.
struct PrivateEngine {
    folder: TempDir,
    options: &'static [&'static str],
    /// Keeps the network namespace.
    namespace: Child,
    process: Option<Child>,
}

impl PrivateEngine {
    /// Starts an engine; `None` if this machine cannot run one.
    async fn start(options: &'static [&'static str]) -> Option<Self> {
        let namespace = Command::new("unshare")
            .args(["--net", "sleep", "1000000"])
            .spawn();
        let mut engine = Self {
            folder: tempfile::tempdir().unwrap(),
            options,
            namespace: namespace.unwrap(),
            process: None,
        };
        std::fs::write(engine.path("daemon.json"), "{}").unwrap();
        if !engine.has_namespace().await || !engine.run().await {
            eprintln!("SKIPPED: a Docker engine of the test's own requires dockerd and root");
            return None;
        }
        let (name, tag) = IMAGE.split_once(':').unwrap();
        import(&engine.client(), name, tag, "").await;
        Some(engine)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn network(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.namespace.id()).into()
    }

    /// Waits for the network namespace. Returns whether there is one of the engine's own.
    async fn has_namespace(&mut self) -> bool {
        let machine = std::fs::read_link("/proc/self/ns/net").unwrap();
        while self.namespace.try_wait().unwrap().is_none() {
            if std::fs::read_link(self.network()).is_ok_and(|own| own != machine) {
                return true;
            }
            sleep(POLL_INTERVAL).await;
        }
        false
    }

    /// Starts the process and waits until it answers. Returns whether it does.
    async fn run(&mut self) -> bool {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("log"));
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net={}", self.network().display()))
            .arg("dockerd");
        for (option, path) in [
            ("--config-file", "daemon.json"),
            ("--data-root", "data"),
            ("--exec-root", "exec"),
            ("--pidfile", "pid"),
        ] {
            command.arg(option).arg(self.path(path));
        }
        let socket = format!("unix://{}", self.path("sock").display());
        command
            .args(["--host", &socket, "--bridge", "none", "--iptables=false"])
            .args(self.options)
            .stderr(log.unwrap())
            .stdout(Stdio::null());
        let Ok(process) = command.spawn() else {
            return false;
        };
        let process = self.process.insert(process);
        let mut has_ended = || process.try_wait().unwrap().is_some();
        let path = self.folder.path().join("sock");
        let answered = async {
            while !has_ended() {
                if path.exists() && client(&path).ping().await.is_ok() {
                    return true;
                }
                sleep(POLL_INTERVAL).await;
            }
            false
        };
        timeout(TIMEOUT, answered).await.unwrap_or(false)
    }

    fn client(&self) -> bollard::Docker {
        client(&self.path("sock"))
    }

    /// Stops the process as an upgrade of the engine does.
    fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = kill(Pid::from_raw(process.id().cast_signed()), Signal::SIGTERM);
            let _ = process.wait();
        }
    }

    async fn restart(&mut self) {
        self.stop();
        assert!(self.run().await, "the engine starts again");
    }

    /// Runs a script with the engine's socket and directory in its environment.
    fn shell(&self, script: &str) {
        let socket = format!("unix://{}", self.path("sock").display());
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdout(Stdio::null());
        shell.env("DOCKER_HOST", socket);
        let _ = shell.env("DATA", self.path("data")).status();
    }

    fn settings(&self) -> Settings {
        Settings {
            socket: self.path("sock"),
            network: format!("setpoint-{}", uid()),
            ..settings()
        }
    }
}

impl Drop for PrivateEngine {
    fn drop(&mut self) {
        // With `live-restore`, its containers outlive it, and so does its directory, which it mounts on itself.
        if self.process.is_some() {
            self.shell("docker ps --all --quiet | xargs --no-run-if-empty docker rm --force");
        }
        self.stop();
        self.shell("umount --lazy --quiet $DATA");
        let _ = self.namespace.kill();
        let _ = self.namespace.wait();
    }
}

fn client(socket: &std::path::Path) -> bollard::Docker {
    let socket = socket.to_str().unwrap();
    bollard::Docker::connect_with_unix(socket, 60, bollard::API_DEFAULT_VERSION).unwrap()
}

/// Its containers end with it, and are started again.
#[tokio::test]
async fn containers_that_a_restart_of_the_engine_ended_are_started_again() {
    let Some(mut engine) = PrivateEngine::start(&[]).await else {
        return;
    };
    let fixture = fixture_with(engine.settings()).await;
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    engine.restart().await;
    assert_eq!(fixture.exited(0).await.code, 0);
    fixture.sandbox_is(|sandbox| !sandbox.ready).await;
    fixture.start(1, &[]).await;
    fixture.running(1).await;
    fixture.clean_up().await;
}

/// An engine with `live-restore` leaves its containers running.
#[tokio::test]
async fn containers_that_outlive_a_restart_of_the_engine_are_kept() {
    let Some(mut engine) = PrivateEngine::start(&["--live-restore"]).await else {
        return;
    };
    let fixture = fixture_with(engine.settings()).await;
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    let before = fixture.container(0);
    engine.stop();
    assert!(
        fixture
            .runtime
            .stop(&setpoint_runtime::contract::id(0), TIMEOUT)
            .await
            .is_err()
    );
    assert!(engine.run().await, "the engine starts again");
    let log = async {
        // The connection is restored in the background.
        while fixture.runtime.readings().await.is_empty() {
            sleep(POLL_INTERVAL).await;
        }
    };
    timeout(TIMEOUT, log)
        .await
        .expect("the container is measured");
    assert_eq!(fixture.container(0), before);
    assert!(matches!(before.unwrap().state, State::Running { .. }));
    assert!(first_sandbox(&fixture).ready);
    fixture.clean_up().await;
}
