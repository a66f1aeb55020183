//! The last step before a container's program: `node-agent confine <folder>` gives up what the container is not to
//! have, and becomes the program.
//!
//! A process of its own, since a process can only give up its own rights, and the shim keeps its own to end the container.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use nix::sys::prctl::set_no_new_privs;
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};

use super::folder::Folder;
use super::shim;
use crate::runtime::{ContainerConfig, Security};

/// Must the container give up anything before its program begins?
pub fn is_needed(security: &Security) -> bool {
    security.no_new_privileges || identity(security).is_some()
}

/// Says why this agent cannot give a container the user and the groups that it asks for.
pub fn obstacle(security: &Security) -> Option<String> {
    let identity = identity(security)?;
    if !identity.is_valid() {
        return Some(
            "runAsUser, runAsGroup and other groups must be between 0 and 2147483647".to_owned(),
        );
    }
    let own = Uid::effective();
    let changes = identity.user != i64::from(own.as_raw()) || !identity.groups.is_empty();
    let cannot = !own.is_root() && (changes || security.run_as_group.is_some());
    cannot.then(|| {
        format!(
            "cannot run as user {}: this node's agent is no root, and runs containers as user {own}",
            identity.user
        )
    })
}

/// The command that confines the container of this folder.
pub fn command(folder: &Folder) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg("confine").arg(folder.path());
    command
}

/// Becomes the program of the container of this folder; returns only if it cannot.
pub fn main(folder: &Path) -> ExitCode {
    let folder = Folder::new(folder);
    // Opened while it may be; closed by the program's start.
    let refused = match (folder.create_start_error(), folder.config()) {
        (Ok(mut file), Ok(config)) => {
            let error = become_program(&config);
            file.write_all(shim::explain(&config, &error).as_bytes())
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    if let Err(error) = refused {
        eprintln!("cannot start the container: {error}");
    }
    ExitCode::FAILURE
}

fn become_program(config: &ContainerConfig) -> io::Error {
    match give_up(&config.security) {
        Ok(()) => shim::command(config).exec(),
        Err(error) => error.into(),
    }
}

fn give_up(security: &Security) -> nix::Result<()> {
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

/// The user and the groups that a container asks for.
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

/// `None` if it asks for none, and so runs as the agent does.
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
