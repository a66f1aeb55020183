//! `setpoint up --watch`: processes that end are started again.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

use crate::converge;
use crate::launcher::{ClusterSpec, ProcessSpec, RunningProcess, StateDir, frozen, topology};
use crate::style::{Colour, Style};

/// Interval between two looks at the processes.
const PERIOD: Duration = Duration::from_secs(1);
/// The longest time until the next try to start a process that does not start; from one second on, it doubles.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// Starts processes again until a signal comes, or the cluster is stopped.
///
/// # Errors
/// The record of the cluster cannot be read.
pub async fn watch(state_dir: &StateDir) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    println!("Watching its processes; Ctrl-C ends that, and leaves the cluster running.");
    tokio::select! {
        ended = restart_forever(state_dir) => ended,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

async fn restart_forever(state_dir: &StateDir) -> anyhow::Result<()> {
    let mut tries = BTreeMap::new();
    loop {
        sleep(PERIOD).await;
        // Another command changes the cluster.
        let Ok(_lock) = state_dir.lock() else {
            continue;
        };
        let spec = ClusterSpec::load(state_dir)?;
        let Some(spec) = spec.filter(|_| !frozen::running(state_dir).is_empty()) else {
            println!("The cluster was stopped.");
            return Ok(());
        };
        if !frozen::is_paused(state_dir) {
            restart_ended(state_dir, &spec, &mut tries).await;
        }
    }
}

/// The number of tries to start a process, and when the next one is due.
type Tries = BTreeMap<String, (u32, Instant)>;

/// Starts the processes that have ended, servers before their clients.
async fn restart_ended(state_dir: &StateDir, spec: &ClusterSpec, tries: &mut Tries) {
    for process in topology::stages(state_dir, spec).iter().flatten() {
        if RunningProcess::find(state_dir, &process.name).is_some() {
            continue;
        }
        let is_due = tries
            .get(&process.name)
            .is_none_or(|(_, due)| *due <= Instant::now());
        if is_due {
            restart(state_dir, process, tries).await;
        }
    }
}

async fn restart(state_dir: &StateDir, process: &ProcessSpec, tries: &mut Tries) {
    let (name, log) = (&process.name, state_dir.log(&process.name));
    let ended = format!("{name} has ended; its log: {}", state_dir.shown(&log));
    println!("{}", Style::stdout().paint(Colour::Yellow, &ended));
    let (count, due) = tries.entry(name.clone()).or_insert((0, Instant::now()));
    *due = Instant::now() + delay(*count);
    match converge::start(state_dir, std::slice::from_ref(process)).await {
        Ok(()) => *count = 0,
        Err(error) => {
            *count = count.saturating_add(1);
            eprintln!("{error:#}");
        }
    }
}

/// Returns the time between two tries to start a process after this number of failures.
fn delay(failures: u32) -> Duration {
    let seconds = 1_u64.checked_shl(failures).unwrap_or(u64::MAX);
    Duration::from_secs(seconds).min(LONGEST_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_does_not_start_is_tried_ever_less_often() {
        let delays = [0, 1, 2, 5, 6, 100].map(|failures| delay(failures).as_secs());
        assert_eq!(delays, [1, 2, 4, 32, 60, 60]);
    }
}
