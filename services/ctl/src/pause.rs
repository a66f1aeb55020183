//! `setpoint pause` and `setpoint resume`: the cluster and its Pods use no CPU, and stay in memory as they are.

use std::process::ExitCode;
use std::time::Duration;

use futures::future::try_join_all;
use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep};

use crate::advice::advised;
use crate::launcher::topology::stage;
use crate::launcher::{RunningProcess, StateDir, frozen, readiness};
use crate::time_format::seconds;

/// Interval between two readiness checks.
const POLL_INTERVAL: Duration = Duration::from_millis(25);
/// A process that is not ready after this time has not come through the pause.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// Freezes all processes.
///
/// # Errors
/// No cluster runs.
pub fn pause(state_dir: &StateDir) -> anyhow::Result<ExitCode> {
    let running = running(state_dir)?;
    let _lock = state_dir.lock()?;
    // Clients first: none waits for an answer of a process that is frozen already.
    signal(&running, 2, Signal::SIGSTOP);
    let pods = frozen::signal_pods(state_dir, Signal::SIGSTOP);
    signal(&running, 1, Signal::SIGSTOP);
    signal(&running, 0, Signal::SIGSTOP);
    println!(
        "Setpoint is paused: {} processes, and {pods} of Pods, stay in memory and use no CPU. `setpoint resume` lets \
         them continue.",
        running.len()
    );
    Ok(ExitCode::SUCCESS)
}

/// Lets all processes continue, and waits until they are ready.
///
/// # Errors
/// No cluster runs, or a process does not become ready.
pub async fn resume(state_dir: &StateDir) -> anyhow::Result<ExitCode> {
    let running = running(state_dir)?;
    let _lock = state_dir.lock()?;
    let begin = Instant::now();
    continue_all(state_dir, &running).await?;
    println!("Setpoint is ready after {}.", seconds(begin.elapsed()));
    Ok(ExitCode::SUCCESS)
}

/// Lets the processes of a cluster that is paused continue, before others are started or all are stopped.
///
/// # Errors
/// As [`resume`].
pub async fn ensure_resumed(state_dir: &StateDir) -> anyhow::Result<()> {
    if !frozen::is_paused(state_dir) {
        return Ok(());
    }
    println!("The cluster is paused; its processes continue");
    continue_all(state_dir, &frozen::running(state_dir)).await
}

fn running(state_dir: &StateDir) -> anyhow::Result<Vec<RunningProcess>> {
    let running = frozen::running(state_dir);
    match running.is_empty() {
        false => Ok(running),
        true => Err(advised(
            format!("no cluster runs in {}", state_dir.shown(state_dir.state())),
            "setpoint start, if it was stopped, or ./deploy/up",
        )),
    }
}

/// Servers first: the agents report their nodes, before a controller can miss them.
async fn continue_all(state_dir: &StateDir, running: &[RunningProcess]) -> anyhow::Result<()> {
    for number in 0..2 {
        signal(running, number, Signal::SIGCONT);
        let in_stage = running
            .iter()
            .filter(|process| stage(&process.name) == number);
        try_join_all(in_stage.map(|process| until_ready(state_dir, process))).await?;
    }
    frozen::signal_pods(state_dir, Signal::SIGCONT);
    signal(running, 2, Signal::SIGCONT);
    try_join_all(
        running
            .iter()
            .map(|process| until_ready(state_dir, process)),
    )
    .await?;
    Ok(())
}

fn signal(running: &[RunningProcess], number: usize, signal: Signal) {
    let in_stage = running
        .iter()
        .filter(|process| stage(&process.name) == number);
    in_stage.for_each(|process| process.signal(signal));
}

async fn until_ready(state_dir: &StateDir, process: &RunningProcess) -> anyhow::Result<()> {
    let Some(port) = process.port() else {
        return Ok(());
    };
    let begin = Instant::now();
    while let Err(why) = readiness::ask(state_dir, &process.name, port).await {
        if begin.elapsed() >= READY_TIMEOUT {
            let log = state_dir.log(&process.name);
            return Err(advised(
                format!(
                    "{} is not ready after {READY_TIMEOUT:?}: {why}",
                    process.name
                ),
                format!("tail {}, and setpoint stop", state_dir.shown(&log)),
            ));
        }
        sleep(POLL_INTERVAL).await;
    }
    Ok(())
}
