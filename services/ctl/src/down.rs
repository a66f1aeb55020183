//! `setpoint down`: everything stops, in the order in which it is not missed.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, bail};
use futures::future::join_all;
use tokio::process::Command;

use crate::folder::Folder;
use crate::launch;
use crate::member::{PATIENCE, Running, forget};
use crate::roster::{NODES, stage};

/// Stops the cluster; its objects stay.
pub async fn down(folder: &Folder) -> anyhow::Result<ExitCode> {
    if !folder.state().exists() {
        println!("Setpoint is not running.");
        return Ok(ExitCode::SUCCESS);
    }
    let _lock = folder.lock()?;
    let stopped = stop(folder, &folder.recorded()).await;
    sweep(folder).await?;
    // Only a cluster that runs has a shape; the next one is chosen anew.
    let _ = fs::remove_file(folder.shape());
    match stopped {
        0 => println!("Setpoint is not running."),
        count => println!(
            "Setpoint is down: {count} processes stopped; its objects are in {}",
            folder.shown(&folder.etcd())
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// Stops those named, the last stage first: controllers give their leases back while there is a gateway to take them,
/// and the gateway answers for as long as anyone asks. Answers how many ran.
pub async fn stop(folder: &Folder, names: &[String]) -> usize {
    let mut count = 0;
    for number in [2, 1, 0] {
        let in_stage = || names.iter().filter(|name| stage(name) == number);
        let running = in_stage().filter_map(|name| Running::find(folder, name));
        let running: Vec<_> = running.collect();
        count += running.len();
        join_all(running.iter().map(end)).await;
        in_stage().for_each(|name| forget(folder, name));
    }
    count
}

async fn end(running: &Running) {
    match running.stop(PATIENCE).await {
        true => println!("  {:<29} stopped", running.name),
        false => println!(
            "  {:<29} killed: it did not stop within {PATIENCE:?}",
            running.name
        ),
    }
}

/// Ends the containers that the agents left running, as they should when only they are restarted.
pub async fn sweep(folder: &Folder) -> anyhow::Result<()> {
    for node in NODES
        .map(|node| folder.node(node))
        .iter()
        .filter(|node| node.exists())
    {
        let output = Command::new(launch::program("node-agent")?)
            .arg("sweep")
            .arg(node)
            .output()
            .await;
        let output =
            output.with_context(|| format!("cannot end the containers of {}", node.display()))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            bail!(
                "the containers of {} still run: {}",
                node.display(),
                why.trim()
            );
        }
    }
    Ok(())
}
