//! Starts a process of the cluster and waits until it is ready.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use std::{env, io};

use anyhow::{Context, bail};
use setpoint_host::probe;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::process::{MARKER_VARIABLE, marker};
use crate::state_dir::StateDir;
use crate::topology::{ProcessSpec, health_path};

/// Interval between two readiness checks.
const POLL_INTERVAL: Duration = Duration::from_millis(25);
/// A process that is not ready after this time has failed to start.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Time until the first message about a process that is not ready yet; doubles with each message.
const PROGRESS_DELAY: Duration = Duration::from_secs(5);

/// A process that was just started.
pub struct Started<'a> {
    process: &'a ProcessSpec,
    state_dir: &'a StateDir,
    port: u16,
    child: Child,
    since: Instant,
}

/// Finds the program of a service: in the directory of this program; for a relay, this program itself; for etcd, in `PATH`.
pub fn program(service: &str) -> anyhow::Result<PathBuf> {
    if service == "etcd" {
        let path = env::var_os("PATH").unwrap_or_default();
        let found = env::split_paths(&path)
            .map(|state_dir| state_dir.join(service))
            .find(|path| path.is_file());
        return found
            .context("etcd is not installed (Debian and Ubuntu: apt-get install etcd-server)");
    }
    let own = env::current_exe().context("cannot find the path of this program")?;
    if service == "relay" {
        return Ok(own);
    }
    let path = own.with_file_name(service);
    match path.is_file() {
        true => Ok(path),
        false => bail!("{} is missing; ./deploy/up builds it", path.display()),
    }
}

/// Starts `process` in the background, in its own process group, listening on `port`.
pub fn start<'a>(
    state_dir: &'a StateDir,
    process: &'a ProcessSpec,
    port: u16,
) -> anyhow::Result<Started<'a>> {
    let program = program(process.service)?;
    let child = command(state_dir, process, &program, port)
        .and_then(|mut command| command.spawn())
        .with_context(|| format!("cannot start {}", program.display()))?;
    let pid = child
        .id()
        .context("a process that was just started has an id")?;
    fs::write(state_dir.pid(&process.name), format!("{pid}\n"))
        .context("cannot record the process id")?;
    fs::write(state_dir.port(&process.name), format!("{port}\n"))
        .context("cannot record the port")?;
    Ok(Started {
        process,
        state_dir,
        port,
        child,
        since: Instant::now(),
    })
}

fn command(
    state_dir: &StateDir,
    process: &ProcessSpec,
    program: &Path,
    port: u16,
) -> io::Result<Command> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(state_dir.log(&process.name))?;
    let mut command = Command::new(program);
    command
        .args(&process.args)
        .current_dir(state_dir.root())
        .env(MARKER_VARIABLE, marker(state_dir, &process.name))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // Ctrl-C in this terminal must not reach the process.
        .process_group(0);
    match process.service {
        // Debian's etcd refuses to run on arm64 without this.
        "etcd" if cfg!(target_arch = "aarch64") => command.env("ETCD_UNSUPPORTED_ARCH", "arm64"),
        "etcd" => &mut command,
        // The services have few threads; more heaps would only hold idle memory.
        _ => command
            .env("MALLOC_ARENA_MAX", "2")
            .args(instance_args(process, port)),
    };
    Ok(command)
}

fn instance_args(process: &ProcessSpec, port: u16) -> [String; 4] {
    [
        "--instance".to_owned(),
        process.name.clone(),
        "--listen".to_owned(),
        format!("127.0.0.1:{port}"),
    ]
}

impl Started<'_> {
    /// Waits until the process is ready, and returns the time since its start.
    ///
    /// # Errors
    /// The process ended or is not ready in time; the error names its log.
    pub async fn ready(&mut self) -> anyhow::Result<Duration> {
        let (name, log) = (&self.process.name, self.state_dir.log(&self.process.name));
        let log = self.state_dir.shown(&log);
        let asking = until_ready(name, self.port, health_path(name));
        tokio::select! {
            ended = self.child.wait() => bail!("{name} ended during its start ({}); its log: {log}", exit_reason(ended)),
            ready = timeout(READY_TIMEOUT, asking) => match ready {
                Ok(()) => Ok(self.since.elapsed()),
                Err(_) => bail!("{name} is not ready after {READY_TIMEOUT:?}; its log: {log}"),
            },
        }
    }
}

fn exit_reason(ended: io::Result<ExitStatus>) -> String {
    ended.map_or_else(|error| error.to_string(), |status| status.to_string())
}

/// Polls the readiness check until it succeeds; prints the reason of the delay from time to time.
async fn until_ready(name: &str, port: u16, path: &str) {
    let (begin, mut next_progress) = (Instant::now(), PROGRESS_DELAY);
    let address = (Ipv4Addr::LOCALHOST, port).into();
    while let Err(why) = probe::ask(address, path).await {
        if begin.elapsed() >= next_progress {
            println!("  {name:<29} {why}");
            next_progress *= 2;
        }
        sleep(POLL_INTERVAL).await;
    }
}
