//! Starts a process of the cluster and waits until it is ready.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;
use std::{env, io};

use anyhow::{Context, bail};
use setpoint_host::private;
use tokio::process::{self, Child};
use tokio::time::{Instant, sleep, timeout};

use super::cluster_spec::LOOPBACK;
use super::joined::{Joined, NodeNetwork, Runtime};
use super::process::{MARKER_VARIABLE, marker};
use super::readiness;
use super::state_dir::StateDir;
use super::topology::{ProcessSpec, is_this_program};
use crate::advice::advised;

/// Interval between two readiness checks.
const POLL_INTERVAL: Duration = Duration::from_millis(25);
/// A process that is not ready after this time has failed to start.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Time until the first message about a process that is not ready yet; doubles with each message.
const PROGRESS_DELAY: Duration = Duration::from_secs(5);
/// Environment variable for the directory of the services' programs.
const PROGRAMS_VARIABLE: &str = "SETPOINT_PROGRAMS";

/// A process that was just started.
pub struct Started<'a> {
    process: &'a ProcessSpec,
    state_dir: &'a StateDir,
    port: u16,
    child: Child,
    since: Instant,
}

/// Finds the program of a service: in the directory that the variable `SETPOINT_PROGRAMS` names, to run another build,
/// or in that of this program, or of this workspace's programs if this is a test; for a relay and for the process of
/// certificates, this program itself; for etcd, in `PATH`.
pub fn program(service: &str) -> anyhow::Result<PathBuf> {
    if service == "etcd" {
        let path = env::var_os("PATH").unwrap_or_default();
        let found = env::split_paths(&path)
            .map(|directory| directory.join(service))
            .find(|path| path.is_file());
        return found.ok_or_else(|| {
            advised(
                "etcd is not installed (Debian and Ubuntu: apt-get install etcd-server)",
                "apt-get install etcd-server, or ./deploy/up",
            )
        });
    }
    let own = env::current_exe().context("cannot find the path of this program")?;
    if is_this_program(service) {
        return Ok(own);
    }
    let path = env::var_os(PROGRAMS_VARIABLE).map_or_else(|| beside(&own), PathBuf::from);
    let path = path.join(service);
    match path.is_file() {
        true => Ok(path),
        false => Err(advised(
            format!("{} is missing; ./deploy/up builds it", path.display()),
            "./deploy/up",
        )),
    }
}

/// Returns the directory of the programs of the same build.
fn beside(own: &Path) -> PathBuf {
    let directory = own.parent().unwrap_or(own);
    // Cargo puts tests into `deps`, below the programs.
    let is_test = directory.ends_with("deps");
    let above = directory.parent().filter(|_| is_test);
    above.unwrap_or(directory).to_owned()
}

/// Starts `process` in the background, in its own process group, listening on `port`.
pub fn start<'a>(
    state_dir: &'a StateDir,
    process: &'a ProcessSpec,
    port: u16,
) -> anyhow::Result<Started<'a>> {
    let mut command = command(state_dir, process, port)?;
    // Ctrl-C in this terminal must not reach the process.
    command.process_group(0);
    let child = process::Command::from(command)
        .spawn()
        .with_context(|| format!("cannot start {}", process.name))?;
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

/// Returns the command that runs `process`, listening on `port` (0 for any free port) and appending to its log.
pub fn command(state_dir: &StateDir, process: &ProcessSpec, port: u16) -> anyhow::Result<Command> {
    let path = state_dir.log(&process.name);
    let log = private::open(private::options().append(true), &path);
    let log = log.with_context(|| format!("cannot write {}", path.display()))?;
    let mut command = Command::new(program(process.service)?);
    command
        .args(&process.args)
        .current_dir(match process.service {
            "etcd" => state_dir.state(),
            _ => state_dir.root(),
        })
        .env(MARKER_VARIABLE, marker(state_dir, &process.name))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    match process.service {
        // Debian's etcd refuses to run on arm64 without this.
        "etcd" if cfg!(target_arch = "aarch64") => command.env("ETCD_UNSUPPORTED_ARCH", "arm64"),
        "etcd" => &mut command,
        // The services have few threads; more heaps would only hold idle memory.
        _ => command
            .env("MALLOC_ARENA_MAX", "2")
            .args(["--instance", &process.name])
            .args(["--listen", &format!("{LOOPBACK}:{port}")]),
    };
    Ok(command)
}

/// Ends the containers of all nodes. Node agents leave them running when they stop, so that an agent can be restarted.
pub fn sweep(state_dir: &StateDir) -> anyhow::Result<()> {
    for node in state_dir.nodes() {
        let mut command = Command::new(program("node-agent")?);
        let output = command.arg("sweep").args(swept(state_dir, &node)).output();
        let output =
            output.with_context(|| format!("cannot stop the containers of {}", node.display()))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            bail!(
                "the containers of {} still run: {}",
                node.display(),
                why.trim()
            );
        }
    }
    Ok(())
}

/// Returns the arguments that say what is swept: the state directory of a node, or a node on a runtime that serves the
/// CRI.
fn swept(state_dir: &StateDir, node: &Path) -> Vec<OsString> {
    let name = node.file_name().unwrap_or_default();
    let joined = name.to_str().and_then(|name| Joined::read(state_dir, name));
    let Some(joined) = joined.filter(|joined| joined.runtime == Runtime::Cri) else {
        return vec![node.into()];
    };
    let mut arguments: Vec<OsString> = ["--runtime", "cri", "--node-name"].map(Into::into).into();
    arguments.push(name.into());
    if let Some(endpoint) = joined.cri_endpoint {
        arguments.extend(["--cri-endpoint".into(), endpoint.into()]);
    }
    let network = joined.network.iter().flat_map(NodeNetwork::cni);
    arguments.extend(network.map(OsString::from));
    arguments
}

impl Started<'_> {
    /// Waits until the process is ready, and returns the time since its start.
    ///
    /// # Errors
    /// The process ended or is not ready in time; the error names its log.
    pub async fn ready(&mut self) -> anyhow::Result<Duration> {
        let (name, log) = (&self.process.name, self.state_dir.log(&self.process.name));
        let log = self.state_dir.shown(&log);
        let asking = until_ready(self.state_dir, name, self.port);
        tokio::select! {
            ended = self.child.wait() => Err(advised(
                format!("{name} ended during its start ({}); its log: {log}", exit_reason(ended)),
                format!("tail {log}"),
            )),
            ready = timeout(READY_TIMEOUT, asking) => match ready {
                Ok(()) => Ok(self.since.elapsed()),
                Err(_) => Err(advised(
                    format!("{name} is not ready after {READY_TIMEOUT:?}; its log: {log}"),
                    format!("tail {log}"),
                )),
            },
        }
    }
}

fn exit_reason(ended: io::Result<ExitStatus>) -> String {
    ended.map_or_else(|error| error.to_string(), |status| status.to_string())
}

/// Polls the readiness check until it succeeds; prints the reason of the delay from time to time.
async fn until_ready(state_dir: &StateDir, name: &str, port: u16) {
    let (begin, mut next_progress) = (Instant::now(), PROGRESS_DELAY);
    while let Err(why) = readiness::ask(state_dir, name, port).await {
        if begin.elapsed() >= next_progress {
            println!("  {name:<29} {why}");
            next_progress *= 2;
        }
        sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_on_a_runtime_of_the_cri_is_swept_there_and_others_by_their_files() {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        let _held = state_dir.lock().unwrap();
        let mut joined = Joined {
            node: "worker-1".to_owned(),
            server: "https://127.0.0.1:6443".to_owned(),
            runtime: Runtime::Cri,
            cri_endpoint: Some("unix:///c.sock".to_owned()),
            network: None,
            token: "abcdef".to_owned(),
        };
        let node = state_dir.node("worker-1");
        let words = || swept(&state_dir, &node).join(" ".as_ref());
        assert_eq!(words(), node.as_os_str());
        joined.write(&state_dir, "ca", "token").unwrap();
        let expected = "--runtime cri --node-name worker-1 --cri-endpoint unix:///c.sock";
        assert_eq!(words(), expected);
        (joined.runtime, joined.cri_endpoint) = (Runtime::Process, None);
        joined.write(&state_dir, "ca", "token").unwrap();
        assert_eq!(words(), node.as_os_str());
    }
}
