//! A member of etcd that joins: a learner, which has no vote, until it has the data of the others. So the others go on
//! meanwhile, and do without it if it never catches up.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use setpoint_store::etcd::membership::{Error, Member, Membership};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

use super::component::start_all;
use crate::control_plane;
use crate::launcher::{Component, StateDir, topology};

/// The time in which a learner catches up. etcd sends a snapshot of its database first, which has gigabytes at most.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(300);
/// The time in which the members reach each other.
const HEALTHY_WITHIN: Duration = Duration::from_secs(60);
/// The interval of asking.
const INTERVAL: Duration = Duration::from_millis(500);
/// The time until the first message about a delay; doubles with each message.
const PROGRESS_DELAY: Duration = Duration::from_secs(5);

/// Adds the member, starts its processes, and waits until it votes. After a failure it is no member.
///
/// # Errors
/// If etcd refuses it, or it does not get ready, or does not catch up.
pub async fn join(state_dir: &StateDir, mut component: Component) -> anyhow::Result<()> {
    let spec = component.plane.spec.clone();
    let membership = control_plane::membership(state_dir, &component.plane).await?;
    check_started(&membership.list().await?)?;
    let added = add(&membership, &topology::peer_url(&spec)).await;
    let (id, members) = added.context("etcd does not take it in")?;
    let name = topology::member_name(&spec);
    println!("{name} is a learner of etcd");
    let learner = Learner {
        membership: &membership,
        id,
    };
    component.initial_cluster = initial_cluster(&members, id, &name);
    let joined = async {
        component.write(state_dir)?;
        tokio::try_join!(start_all(state_dir), learner.vote(&name))
    };
    match until_interrupted(joined).await {
        Ok(_) => Ok(()),
        Err(error) => Err(learner.remove(error).await),
    }
}

/// Adds a learner once all members reach each other, which etcd sees some seconds after another one has joined.
async fn add(membership: &Membership, peer: &str) -> anyhow::Result<(u64, Vec<Member>)> {
    let (begin, mut next_progress) = (Instant::now(), PROGRESS_DELAY);
    loop {
        match membership.add_learner(peer).await {
            Err(Error::Unhealthy) if begin.elapsed() < HEALTHY_WITHIN => {}
            added => return Ok(added?),
        }
        if begin.elapsed() >= next_progress {
            println!("Waiting until the members of etcd reach each other");
            next_progress *= 2;
        }
        sleep(INTERVAL).await;
    }
}

struct Learner<'a> {
    membership: &'a Membership,
    id: u64,
}

impl Learner<'_> {
    /// Waits until it has caught up, and gives it a vote.
    async fn vote(&self, name: &str) -> anyhow::Result<()> {
        let (begin, mut next_progress) = (Instant::now(), PROGRESS_DELAY);
        while !self.membership.promote(self.id).await? {
            if begin.elapsed() >= CAUGHT_UP_WITHIN {
                bail!("{name} has not caught up within {CAUGHT_UP_WITHIN:?}");
            }
            if begin.elapsed() >= next_progress {
                println!("Waiting for {name}, which has not caught up yet");
                next_progress *= 2;
            }
            sleep(INTERVAL).await;
        }
        println!("{name} has caught up, and votes");
        Ok(())
    }

    /// Removes it after a failure. Returns what to tell.
    async fn remove(&self, error: anyhow::Error) -> anyhow::Error {
        match self.membership.remove(self.id).await {
            Ok(()) => error,
            Err(second) => error.context(format!(
                "it is still a member, {:016x}, until `setpoint members --remove`: {second}",
                self.id
            )),
        }
    }
}

/// Returns the outcome, or an error once a signal comes.
async fn until_interrupted<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        outcome = work => outcome,
        _ = interrupt.recv() => Err(anyhow!("interrupted")),
        _ = terminate.recv() => Err(anyhow!("interrupted")),
    }
}

/// Fails if a member has never started: with one more, etcd may lose its majority.
fn check_started(members: &[Member]) -> anyhow::Result<()> {
    match members.iter().find(|member| member.name.is_empty()) {
        Some(member) => bail!(
            "the member of etcd at {} was added and has never started: `setpoint members --remove {:016x}` removes it",
            member.peers.join(","),
            member.id
        ),
        None => Ok(()),
    }
}

/// Returns the members as etcd's flag has them; the new one has this name.
fn initial_cluster(members: &[Member], new: u64, name: &str) -> String {
    let each = members.iter().flat_map(|member| {
        let name = if member.id == new { name } else { &member.name };
        member
            .peers
            .iter()
            .map(move |peer| format!("{name}={peer}"))
    });
    each.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: u64, name: &str) -> Member {
        Member {
            id,
            name: name.to_owned(),
            peers: vec![format!("https://10.0.0.{id}:2380")],
            ..Member::default()
        }
    }

    #[test]
    fn the_members_are_those_that_there_were_and_the_new_one() {
        let members = [member(1, "etcd-10-0-0-1"), member(2, "")];
        assert_eq!(
            initial_cluster(&members, 2, "etcd-10-0-0-2"),
            "etcd-10-0-0-1=https://10.0.0.1:2380,etcd-10-0-0-2=https://10.0.0.2:2380"
        );
        assert!(check_started(&members[..1]).is_ok());
        let why = check_started(&members).unwrap_err().to_string();
        assert!(
            why.contains("setpoint members --remove 0000000000000002"),
            "{why}"
        );
    }
}
