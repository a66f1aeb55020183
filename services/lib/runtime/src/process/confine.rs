//! The last step before a program of a container: `node-agent confine <folder>` drops privileges, then executes the
//! container's program, whose configuration is its stdin; `node-agent confine <folder> <tty|plain> <command>…` does so
//! with a command that runs beside it, in a session of its own.
//!
//! It is a process of its own because the shim must keep its privileges to be able to kill the container.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::prctl::set_no_new_privs;
use nix::sys::signal::SigSet;
use nix::unistd::{Gid, Uid, setgid, setgroups, setsid, setuid};
use rustix::process::ioctl_tiocsctty;

use super::folder::Folder;
use super::{handover, mounts, shim};
use crate::{ContainerConfig, Security};

/// Exit codes of a command that does not exist, and of one that cannot be executed, as shells and runc report them.
const NOT_FOUND: u8 = 127;
const CANNOT_RUN: u8 = 126;
/// The time in which a container that was started makes its mounts.
const MOUNT_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval of looks for them.
const MOUNT_INTERVAL: Duration = Duration::from_millis(5);

/// Returns whether the container needs this step.
pub fn is_needed(security: &Security) -> bool {
    security.no_new_privileges || identity(security).is_some()
}

/// Returns why this agent cannot run a container as the requested user and groups, if it cannot.
pub fn unsupported_identity(security: &Security) -> Option<String> {
    let identity = identity(security)?;
    if !identity.is_valid() {
        return Some(
            "runAsUser, runAsGroup and supplemental groups must be between 0 and 2147483647"
                .to_owned(),
        );
    }
    let own = Uid::effective();
    let changes = identity.user != i64::from(own.as_raw()) || !identity.groups.is_empty();
    let cannot = !own.is_root() && (changes || security.run_as_group.is_some());
    cannot.then(|| {
        format!(
            "cannot run as user {}: the node agent is not root and runs all containers as user {own}",
            identity.user
        )
    })
}

/// Returns the command that confines the container in this directory.
pub fn command(folder: &Folder) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg("confine").arg(folder.path());
    command
}

/// Returns the command that runs `command` beside the container in this directory.
pub fn exec_command(folder: &Folder, tty: bool, command: &[OsString]) -> Command {
    let mut program = self::command(folder);
    program.arg(if tty { "tty" } else { "plain" }).args(command);
    program
}

/// Executes a command beside the container in this directory; returns only if that fails.
pub fn exec(folder: &Path, tty: bool, command: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else {
        return ExitCode::FAILURE;
    };
    let refused = |dir: &str, error: io::Error| {
        let program = program.to_string_lossy();
        eprintln!("{}", shim::exec_error_message(&program, dir, &error));
        ExitCode::from(match error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            _ => CANNOT_RUN,
        })
    };
    let config = match Folder::new(folder).config() {
        Ok(config) => config,
        Err(error) => return refused("", error),
    };
    let folder = Folder::new(folder);
    let ready = lead_session(tty)
        .and_then(|()| join_mounts(&folder, &config))
        .and_then(|()| drop_privileges(&config.security).map_err(io::Error::from));
    let error = match ready {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error,
    };
    refused(&config.working_dir, error)
}

/// Makes this process the leader of a session and a process group, with its stdin as the terminal if `tty`.
fn lead_session(tty: bool) -> io::Result<()> {
    SigSet::empty().thread_set_mask()?;
    setsid()?;
    if tty {
        ioctl_tiocsctty(io::stdin())?;
    }
    Ok(())
}

/// Executes the program of the container in this directory; returns only if that fails.
pub fn main(folder: &Path) -> ExitCode {
    let folder = Folder::new(folder);
    // Opened before privileges are dropped; closed when the program is executed.
    let config = handover::receive().and_then(|config| handover::close().map(|()| config));
    let refused = match (folder.create_start_error(), config) {
        (Ok(mut file), Ok(config)) => {
            let message = match make_mounts(&folder, &config) {
                Ok(()) => shim::start_error_message(&config, &exec_program(&config)),
                Err(error) => error.to_string(),
            };
            file.write_all(message.as_bytes())
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    if let Err(error) = refused {
        eprintln!("cannot start the container: {error}");
    }
    ExitCode::FAILURE
}

fn exec_program(config: &ContainerConfig) -> io::Error {
    match drop_privileges(&config.security) {
        Ok(()) => shim::command(config).exec(),
        Err(error) => error.into(),
    }
}

/// Makes the mounts of the container, in a namespace of their own.
fn make_mounts(folder: &Folder, config: &ContainerConfig) -> io::Result<()> {
    let mounts = folder.mounts()?;
    if mounts.is_empty() {
        return Ok(());
    }
    mounts::enter_new(&mounts)?;
    folder.write_mounted()?;
    enter_working_dir(folder, config).map_err(|error| {
        io::Error::other(shim::exec_error_message("", &config.working_dir, &error))
    })
}

/// Joins the container's mounts, if it has any. A container counts as started before it has made them: without the wait
/// the command would see the file system of the machine.
fn join_mounts(folder: &Folder, config: &ContainerConfig) -> io::Result<()> {
    if folder.mounts()?.is_empty() {
        return Ok(());
    }
    let deadline = Instant::now() + MOUNT_TIMEOUT;
    while !folder.is_mounted() {
        if folder.exit()?.is_some() || Instant::now() >= deadline {
            return Err(io::Error::other("the container has no mounts"));
        }
        sleep(MOUNT_INTERVAL);
    }
    let started = folder.started()?.ok_or(io::ErrorKind::NotFound)?;
    mounts::join(&started.process)?;
    enter_working_dir(folder, config)
}

/// Enters the working directory again, which may be in a volume.
fn enter_working_dir(folder: &Folder, config: &ContainerConfig) -> io::Result<()> {
    match shim::working_dir(folder, config) {
        Some(folder) => std::env::set_current_dir(folder),
        None => Ok(()),
    }
}

fn drop_privileges(security: &Security) -> nix::Result<()> {
    if let Some(identity) = identity(security)
        && Uid::effective().is_root()
    {
        let raw = |id: &i64| u32::try_from(*id).map_err(|_| nix::Error::EINVAL);
        let groups = identity.groups.iter().map(|id| raw(id).map(Gid::from_raw));
        setgroups(&groups.collect::<Result<Vec<_>, _>>()?)?;
        setgid(Gid::from_raw(raw(&identity.group)?))?;
        setuid(Uid::from_raw(raw(&identity.user)?))?;
    }
    if security.no_new_privileges {
        set_no_new_privs()?;
    }
    Ok(())
}

/// A requested user with its groups.
struct Identity {
    user: i64,
    group: i64,
    groups: Vec<i64>,
}

impl Identity {
    fn is_valid(&self) -> bool {
        let mut all = [self.user, self.group]
            .into_iter()
            .chain(self.groups.clone());
        all.all(|id| (0..=i64::from(i32::MAX)).contains(&id))
    }
}

/// Returns the requested identity; `None` if the container runs as the agent's user.
fn identity(security: &Security) -> Option<Identity> {
    let groups = &security.supplemental_groups;
    let asked = security.run_as_user.or(security.run_as_group).is_some() || !groups.is_empty();
    asked.then(|| Identity {
        user: security
            .run_as_user
            .unwrap_or(Uid::effective().as_raw().into()),
        group: security.run_as_group.unwrap_or_default(),
        groups: groups.clone(),
    })
}
