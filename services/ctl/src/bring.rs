//! From what runs to what should run: newcomers are started, the misinformed restarted, the surplus stopped.

use std::time::Duration;

use anyhow::bail;
use futures::stream::{FuturesUnordered, TryStreamExt};
use tokio::signal::unix::{SignalKind, signal};

use crate::down::{stop, sweep};
use crate::folder::Folder;
use crate::launch::{self, Started};
use crate::member::Running;
use crate::port;
use crate::roster::{Member, service};

/// What is to be done to a cluster.
pub struct Change {
    /// Who does not run, in stages.
    pub missing: [Vec<Member>; 3],
    /// Who runs, but was told other things than it would be told now.
    pub misinformed: Vec<Member>,
    /// Who runs and should not.
    pub surplus: Vec<String>,
}

impl Change {
    /// The difference between what runs and `everyone`.
    pub fn of(folder: &Folder, everyone: &[Vec<Member>; 3]) -> Self {
        let find = |member: &Member| Running::find(folder, &member.name);
        let missing = everyone.each_ref().map(|stage| {
            let missing = stage.iter().filter(|member| find(member).is_none());
            missing.cloned().collect()
        });
        // etcd is told only where it is, and that cannot change while it runs.
        let told = everyone[1..].iter().flatten();
        let misinformed =
            told.filter(|member| find(member).is_some_and(|running| !running.agrees(member)));
        let wanted = |name: &String| everyone.iter().flatten().any(|member| member.name == *name);
        let recorded = folder.recorded().into_iter();
        let surplus =
            recorded.filter(|name| !wanted(name) && Running::find(folder, name).is_some());
        Self {
            missing,
            misinformed: misinformed.cloned().collect(),
            surplus: surplus.collect(),
        }
    }

    /// How many do not run.
    pub fn count(&self) -> usize {
        self.missing.iter().map(Vec::len).sum()
    }

    /// Is there nothing to do?
    pub fn is_none(&self) -> bool {
        self.count() == 0 && self.misinformed.is_empty() && self.surplus.is_empty()
    }

    /// Does it; if that fails, or is interrupted, stops again whatever it started.
    pub async fn carry_out(&self, folder: &Folder) -> anyhow::Result<()> {
        let (mut interrupt, mut terminate) = (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        );
        let outcome = tokio::select! {
            outcome = self.work(folder) => outcome,
            _ = interrupt.recv() => Err(anyhow::anyhow!("interrupted")),
            _ = terminate.recv() => Err(anyhow::anyhow!("interrupted")),
        };
        if outcome.is_err() {
            self.undo(folder).await?;
        }
        outcome
    }

    async fn work(&self, folder: &Folder) -> anyhow::Result<()> {
        for stage in &self.missing {
            start(folder, stage).await?;
        }
        // One after the other, so that of each service somebody always works.
        for member in &self.misinformed {
            restart(folder, member).await?;
        }
        // Last, when nobody needs them any more.
        stop(folder, &self.surplus).await;
        Ok(())
    }

    async fn undo(&self, folder: &Folder) -> anyhow::Result<()> {
        let started = self.missing.iter().flatten();
        let names: Vec<_> = started.map(|member| member.name.clone()).collect();
        stop(folder, &names).await;
        match names.iter().any(|name| service(name) == "node-agent") {
            true => sweep(folder).await,
            false => Ok(()),
        }
    }
}

/// Starts one stage, all at once, and waits until each is ready.
async fn start(folder: &Folder, stage: &[Member]) -> anyhow::Result<()> {
    let ports = port::free(stage.len())?;
    let started = stage.iter().zip(ports).map(|(member, free)| {
        let started = launch::start(folder, member, member.port.unwrap_or(free))?;
        Ok((member, started))
    });
    let started: anyhow::Result<Vec<_>> = started.collect();
    let waiting: FuturesUnordered<_> = started?
        .into_iter()
        .map(|(member, started)| watch(member, started))
        .collect();
    waiting.try_collect().await
}

async fn watch(member: &Member, mut started: Started<'_>) -> anyhow::Result<()> {
    let took = started.ready().await?;
    println!("  {:<29} ready after {}", member.name, seconds(took));
    Ok(())
}

/// Stops a member in order and starts it with what it is told now.
async fn restart(folder: &Folder, member: &Member) -> anyhow::Result<()> {
    if stop(folder, std::slice::from_ref(&member.name)).await == 0 {
        bail!("{} ended while the cluster was being changed", member.name);
    }
    start(folder, std::slice::from_ref(member)).await
}

/// A duration as people read it.
pub fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}
