//! Changes the running processes to the wanted ones: starts missing processes, restarts those with outdated arguments,
//! and stops those that are not wanted.
use anyhow::bail;
use futures::stream::{FuturesUnordered, TryStreamExt};
use tokio::signal::unix::{SignalKind, signal};

use crate::down::stop;
use crate::launcher::topology::{self, service_of};
use crate::launcher::{self, Joined, ProcessSpec, RunningProcess, Started, StateDir, port, sweep};
use crate::time_format::seconds;

/// The difference between the running and the wanted processes.
pub struct Plan {
    /// Processes that do not run, in stages.
    pub missing: [Vec<ProcessSpec>; 3],
    /// Processes that run with other arguments than they should have.
    pub outdated: Vec<ProcessSpec>,
    /// Names of processes that run and should not.
    pub surplus: Vec<String>,
}

impl Plan {
    /// Compares the running processes with the wanted `stages`.
    pub fn compute(state_dir: &StateDir, stages: &[Vec<ProcessSpec>; 3]) -> Self {
        let find = |process: &ProcessSpec| RunningProcess::find(state_dir, &process.name);
        let missing = stages.each_ref().map(|stage| {
            let missing = stage.iter().filter(|process| find(process).is_none());
            missing.cloned().collect()
        });
        let outdated = stages
            .iter()
            .flatten()
            .filter(|process| find(process).is_some_and(|running| !running.is_current(process)));
        // Those that have joined are of their own: a cluster with fewer processes keeps them.
        let joined = Joined::all(state_dir).into_iter();
        let joined: Vec<_> = joined
            .flat_map(|one| topology::joined(state_dir, &one))
            .collect();
        let wanted = |name: &String| {
            let mut processes = stages.iter().flatten().chain(&joined);
            processes.any(|process| process.name == *name)
        };
        let recorded = state_dir.recorded().into_iter();
        let surplus = recorded
            .filter(|name| !wanted(name) && RunningProcess::find(state_dir, name).is_some());
        Self {
            missing,
            outdated: outdated.cloned().collect(),
            surplus: surplus.collect(),
        }
    }

    /// Returns the number of missing processes.
    pub fn count(&self) -> usize {
        self.missing.iter().map(Vec::len).sum()
    }

    /// Whether all wanted processes run as they should, and no others.
    pub fn is_empty(&self) -> bool {
        self.count() == 0 && self.outdated.is_empty() && self.surplus.is_empty()
    }

    /// Executes the plan.
    ///
    /// # Errors
    /// A process did not become ready, or a signal interrupted the command; all processes that were started are
    /// stopped.
    pub async fn execute(&self, state_dir: &StateDir) -> anyhow::Result<()> {
        let (mut interrupt, mut terminate) = (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        );
        let outcome = tokio::select! {
            outcome = self.work(state_dir) => outcome,
            _ = interrupt.recv() => Err(anyhow::anyhow!("interrupted")),
            _ = terminate.recv() => Err(anyhow::anyhow!("interrupted")),
        };
        if outcome.is_err() {
            self.undo(state_dir).await?;
        }
        outcome
    }

    async fn work(&self, state_dir: &StateDir) -> anyhow::Result<()> {
        for stage in &self.missing {
            start(state_dir, stage).await?;
        }
        // One at a time, so that the other replicas of a service keep working.
        for process in &self.outdated {
            restart(state_dir, process).await?;
        }
        // Last, because outdated processes may still use them.
        stop(state_dir, &self.surplus).await;
        Ok(())
    }

    async fn undo(&self, state_dir: &StateDir) -> anyhow::Result<()> {
        let started = self.missing.iter().flatten();
        let names: Vec<_> = started.map(|process| process.name.clone()).collect();
        stop(state_dir, &names).await;
        match names.iter().any(|name| service_of(name) == "node-agent") {
            true => sweep(state_dir),
            false => Ok(()),
        }
    }
}

/// Starts the processes of one stage in parallel, and waits until all are ready.
pub async fn start(state_dir: &StateDir, stage: &[ProcessSpec]) -> anyhow::Result<()> {
    let ports = port::free(stage.len())?;
    let started = stage.iter().zip(ports).map(|(process, free)| {
        let started = launcher::start(state_dir, process, process.port.unwrap_or(free))?;
        Ok((process, started))
    });
    let started: anyhow::Result<Vec<_>> = started.collect();
    let waiting: FuturesUnordered<_> = started?
        .into_iter()
        .map(|(process, started)| watch(process, started))
        .collect();
    waiting.try_collect().await
}

async fn watch(process: &ProcessSpec, mut started: Started<'_>) -> anyhow::Result<()> {
    let took = started.ready().await?;
    println!("  {:<29} ready after {}", process.name, seconds(took));
    Ok(())
}

/// Stops a process and starts it with its new arguments.
pub async fn restart(state_dir: &StateDir, process: &ProcessSpec) -> anyhow::Result<()> {
    if stop(state_dir, std::slice::from_ref(&process.name)).await == 0 {
        bail!("{} ended while the cluster was being changed", process.name);
    }
    start(state_dir, std::slice::from_ref(process)).await
}
