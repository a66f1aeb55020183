//! `setpoint down`: stops all processes in the reverse order of their start.

use std::fs;
use std::process::ExitCode;

use futures::future::join_all;

use crate::launcher::topology::stage;
use crate::launcher::{Network, RunningProcess, STOP_TIMEOUT, StateDir, node_dns, proxy, sweep};
use crate::pause::ensure_resumed;

/// Stops the cluster; its objects are kept.
pub async fn down(state_dir: &StateDir) -> anyhow::Result<ExitCode> {
    if !state_dir.state().exists() {
        println!("Setpoint is not running.");
        return Ok(ExitCode::SUCCESS);
    }
    let _lock = state_dir.lock()?;
    let stopped = halt(state_dir).await?;
    // The record describes a running cluster only; the next `up` starts from the defaults.
    let _ = fs::remove_file(state_dir.cluster_spec());
    match stopped {
        0 => println!("Setpoint is not running."),
        count if !state_dir.has_cluster() => {
            println!("Setpoint is down: {count} processes stopped")
        }
        count => println!(
            "Setpoint is down: {count} processes stopped; its objects are in {}",
            state_dir.shown(&state_dir.etcd())
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// Stops all processes, and removes what they have made on this machine. Returns how many were running.
///
/// # Errors
/// Something cannot be removed.
pub async fn halt(state_dir: &StateDir) -> anyhow::Result<usize> {
    // Processes that are frozen do not stop, or wait in vain for those that are.
    if let Err(error) = ensure_resumed(state_dir).await {
        eprintln!("{error:#}");
    }
    let stopped = stop(state_dir, &state_dir.recorded()).await;
    sweep(state_dir)?;
    proxy::forget(state_dir)?;
    proxy::forget_routes(state_dir)?;
    node_dns::forget(state_dir)?;
    Network::forget(state_dir)?;
    Ok(stopped)
}

/// Stops the named processes, last stage first, so that controllers can release their leases through a gateway. Returns
/// how many were running.
pub async fn stop(state_dir: &StateDir, names: &[String]) -> usize {
    let mut count = 0;
    for number in [2, 1, 0] {
        let in_stage = || names.iter().filter(|name| stage(name) == number);
        let running = in_stage().filter_map(|name| RunningProcess::find(state_dir, name));
        let running: Vec<_> = running.collect();
        count += running.len();
        join_all(running.iter().map(stop_one)).await;
        in_stage().for_each(|name| state_dir.remove_records(name));
    }
    count
}

async fn stop_one(running: &RunningProcess) {
    match running.stop(STOP_TIMEOUT).await {
        true => println!("  {:<29} stopped", running.name),
        false => println!(
            "  {:<29} killed: it did not stop within {STOP_TIMEOUT:?}",
            running.name
        ),
    }
}
