//! The last step before a container's program: `node-agent confine <folder>` drops privileges, then executes the
//! program.
//!
//! It is a process of its own because the shim must keep its privileges to be able to kill the container.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use nix::sys::prctl::set_no_new_privs;
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};

use super::folder::Folder;
use super::shim;
use crate::runtime::{ContainerConfig, Security};

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

/// Executes the program of the container in this directory; returns only if that fails.
pub fn main(folder: &Path) -> ExitCode {
    let folder = Folder::new(folder);
    // Opened before privileges are dropped; closed when the program is executed.
    let refused = match (folder.create_start_error(), folder.config()) {
        (Ok(mut file), Ok(config)) => {
            let error = exec_program(&config);
            file.write_all(shim::start_error_message(&config, &error).as_bytes())
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
