//! `setpoint members`: the members of etcd in a cluster of several machines, and the removal of one that is dead.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use futures::future::join_all;
use setpoint_store::Store as _;
use setpoint_store::etcd::membership::{Member, Membership};
use setpoint_store::etcd::{Etcd, Settings};

use crate::control_plane;
use crate::launcher::{StateDir, known_members};
use crate::table::render;

/// The time in which a member that is healthy answers.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// The options of `setpoint members`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Remove the member with this name or id, which is dead or is to be. Those that are left and run must be more than
    /// half
    #[arg(long, value_name = "NAME|ID")]
    remove: Option<String>,
}

/// Lists the members, or removes one. The exit code is a failure if one is not healthy.
///
/// # Errors
/// This machine has no part of a control plane, no member answers, or etcd refuses the removal.
pub async fn members(state_dir: &StateDir, options: &Options) -> anyhow::Result<ExitCode> {
    let plane = control_plane::recorded(state_dir)?;
    let settings = control_plane::etcd(state_dir, &plane)?;
    let membership = Membership::connect(&settings).await?;
    let members = membership.list().await?;
    known_members::write(state_dir, &members)?;
    match &options.remove {
        Some(name) => remove(&membership, &members, name).await,
        None => Ok(list(&members, &settings).await),
    }
}

async fn list(members: &[Member], settings: &Settings) -> ExitCode {
    let states = join_all(members.iter().map(|member| state(member, settings))).await;
    let is_healthy = states.iter().all(|state| *state == "healthy");
    let rows = members.iter().zip(states).map(|(member, state)| {
        [
            format!("{:016x}", member.id),
            name_of(member).to_owned(),
            member.clients.join(","),
            state.to_owned(),
        ]
    });
    print!("{}", render(["ID", "NAME", "CLIENTS", "STATE"], rows));
    match is_healthy {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn name_of(member: &Member) -> &str {
    match member.name.as_str() {
        "" => "-",
        name => name,
    }
}

/// Returns whether a member answers a read that needs the majority of all.
async fn state(member: &Member, settings: &Settings) -> &'static str {
    if member.name.is_empty() {
        return "never started";
    }
    if member.is_learner {
        return "learner";
    }
    let settings = Settings {
        endpoints: member.clients.clone(),
        timeout: ANSWERS_WITHIN,
        ..settings.clone()
    };
    let read = async { Etcd::connect(&settings).await?.revision().await };
    match tokio::time::timeout(ANSWERS_WITHIN, read).await {
        Ok(Ok(_)) => "healthy",
        Ok(Err(_)) | Err(_) => "does not answer",
    }
}

async fn remove(
    membership: &Membership,
    members: &[Member],
    name: &str,
) -> anyhow::Result<ExitCode> {
    let member = find(members, name)?;
    let removed = membership.remove(member.id).await;
    removed.with_context(|| format!("etcd does not remove {name}"))?;
    println!(
        "{} is no member any more. Its data are of no use: delete the state directory of its machine before another one \
         joins there. `setpoint up` on machines with gateways tells them",
        name_of(member)
    );
    Ok(ExitCode::SUCCESS)
}

fn find<'m>(members: &'m [Member], name: &str) -> anyhow::Result<&'m Member> {
    let id = u64::from_str_radix(name, 16).ok();
    let mut named = members
        .iter()
        .filter(|member| Some(member.id) == id || !name.is_empty() && member.name == name);
    match (named.next(), members) {
        (None, _) => bail!("etcd has no member {name}: `setpoint members` shows those that it has"),
        (Some(_), [_]) => bail!("{name} is the only member of etcd"),
        (Some(member), _) => Ok(member),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_named_by_its_name_or_id_and_the_last_one_stays() {
        let member = |id: u64, name: &str| Member {
            id,
            name: name.to_owned(),
            ..Member::default()
        };
        let members = [member(0xab, "etcd-10-0-0-1"), member(0xcd, "")];
        assert_eq!(find(&members, "etcd-10-0-0-1").unwrap().id, 0xab);
        assert_eq!(find(&members, "00000000000000cd").unwrap().id, 0xcd);
        for other in ["", "etcd-10-0-0-3", "ef"] {
            assert!(find(&members, other).is_err(), "{other}");
        }
        assert!(find(&members[..1], "etcd-10-0-0-1").is_err());
    }
}
