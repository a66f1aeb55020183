//! `setpoint stop` and `setpoint start`: the cluster ends with all its processes, and starts again as it was.

use std::process::ExitCode;

use crate::advice::advised;
use crate::down::halt;
use crate::launcher::{ClusterSpec, StateDir, frozen};
use crate::up;

/// Stops all processes. Objects, size and ports are kept.
///
/// # Errors
/// Something that was made on this machine cannot be removed.
pub async fn stop(state_dir: &StateDir) -> anyhow::Result<ExitCode> {
    if !state_dir.state().exists() {
        println!("Setpoint is not running.");
        return Ok(ExitCode::SUCCESS);
    }
    let _lock = state_dir.lock()?;
    match halt(state_dir).await? {
        0 => println!("Setpoint is not running."),
        count => println!(
            "Setpoint is stopped: {count} processes. `setpoint start` starts it again, with its objects, size and ports."
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts a cluster that was stopped, or that a restart of the machine has ended, as it was.
///
/// # Errors
/// There is none, or a process does not become ready.
pub async fn start(state_dir: &StateDir) -> anyhow::Result<ExitCode> {
    let Some(spec) = ClusterSpec::load(state_dir)? else {
        let place = state_dir.shown(state_dir.state());
        let message = format!("no cluster was stopped in {place} by `setpoint stop`");
        return Err(advised(
            message,
            "./deploy/up, or setpoint up with its options",
        ));
    };
    match frozen::running(state_dir).is_empty() {
        true => up::again(state_dir, spec).await,
        false => up::up(state_dir, &up::Options::default()).await,
    }
}
