//! Starting a process of the cluster and waiting until it is ready.

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

use crate::folder::Folder;
use crate::member::{MARK, mark};
use crate::roster::{Member, health};

/// Between two questions whether a process is ready.
const ASK: Duration = Duration::from_millis(25);
/// A process that is not ready by then will not be.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to be silent about a process that takes its time, at first.
const SILENCE: Duration = Duration::from_secs(5);

/// A process that was just started.
pub struct Started<'a> {
    member: &'a Member,
    folder: &'a Folder,
    port: u16,
    child: Child,
    since: Instant,
}

/// Finds the program of a service: beside this one, or this one for a relay, or for etcd wherever the shell finds it.
pub fn program(service: &str) -> anyhow::Result<PathBuf> {
    if service == "etcd" {
        let path = env::var_os("PATH").unwrap_or_default();
        let found = env::split_paths(&path)
            .map(|folder| folder.join(service))
            .find(|path| path.is_file());
        return found
            .context("etcd is not installed (Debian and Ubuntu: apt-get install etcd-server)");
    }
    let own = env::current_exe().context("where this program is")?;
    if service == "relay" {
        return Ok(own);
    }
    let path = own.with_file_name(service);
    match path.is_file() {
        true => Ok(path),
        false => bail!("{} is missing; ./deploy/up builds it", path.display()),
    }
}

/// Starts `member` apart from this process and this terminal, listening on `port`.
pub fn start<'a>(folder: &'a Folder, member: &'a Member, port: u16) -> anyhow::Result<Started<'a>> {
    let program = program(member.service)?;
    let child = command(folder, member, &program, port)
        .and_then(|mut command| command.spawn())
        .with_context(|| format!("cannot start {}", program.display()))?;
    let pid = child
        .id()
        .context("a process that was just started has an id")?;
    fs::write(folder.pid(&member.name), format!("{pid}\n"))
        .context("cannot record the process id")?;
    fs::write(folder.port(&member.name), format!("{port}\n")).context("cannot record the port")?;
    Ok(Started {
        member,
        folder,
        port,
        child,
        since: Instant::now(),
    })
}

fn command(folder: &Folder, member: &Member, program: &Path, port: u16) -> io::Result<Command> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(folder.log(&member.name))?;
    let mut command = Command::new(program);
    command
        .args(&member.args)
        .current_dir(folder.root())
        .env(MARK, mark(folder, &member.name))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // Ctrl-C in this terminal is not for them.
        .process_group(0);
    match member.service {
        // Debian's etcd refuses to run on arm64 unless told that this is meant.
        "etcd" if cfg!(target_arch = "aarch64") => command.env("ETCD_UNSUPPORTED_ARCH", "arm64"),
        "etcd" => &mut command,
        // Few threads need few heaps; each one more is memory that idles.
        _ => command.env("MALLOC_ARENA_MAX", "2").args(own(member, port)),
    };
    Ok(command)
}

fn own(member: &Member, port: u16) -> [String; 4] {
    [
        "--instance".to_owned(),
        member.name.clone(),
        "--listen".to_owned(),
        format!("127.0.0.1:{port}"),
    ]
}

impl Started<'_> {
    /// Waits until it is ready, and answers how long that took.
    ///
    /// # Errors
    /// It ended, or takes too long; says where its log is.
    pub async fn ready(&mut self) -> anyhow::Result<Duration> {
        let (name, log) = (&self.member.name, self.folder.log(&self.member.name));
        let log = self.folder.shown(&log);
        let asking = until_ready(name, self.port, health(name));
        tokio::select! {
            ended = self.child.wait() => bail!("{name} ended during its start ({}); its log: {log}", how(ended)),
            ready = timeout(PATIENCE, asking) => match ready {
                Ok(()) => Ok(self.since.elapsed()),
                Err(_) => bail!("{name} is not ready after {PATIENCE:?}; its log: {log}"),
            },
        }
    }
}

fn how(ended: io::Result<ExitStatus>) -> String {
    ended.map_or_else(|error| error.to_string(), |status| status.to_string())
}

/// Asks until the answer is yes; says now and then what it waits for.
async fn until_ready(name: &str, port: u16, path: &str) {
    let (begin, mut silence) = (Instant::now(), SILENCE);
    let address = (Ipv4Addr::LOCALHOST, port).into();
    while let Err(why) = probe::ask(address, path).await {
        if begin.elapsed() >= silence {
            println!("  {name:<29} {why}");
            silence *= 2;
        }
        sleep(ASK).await;
    }
}
