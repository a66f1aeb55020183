//! `setpoint down`: everything stops, in the order in which it is not missed.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use futures::future::join_all;
use tokio::process::Command;

use crate::cli::{Profile, Up};
use crate::folder::Folder;
use crate::launch;
use crate::member::{Running, forget};
use crate::roster::{Member, NODES, stages};

/// Longer than a service takes to drain, which is 10 s unless its settings say otherwise.
const PATIENCE: Duration = Duration::from_secs(15);

/// Stops the cluster; its objects stay.
pub async fn down(folder: &Folder) -> anyhow::Result<ExitCode> {
    if !folder.state().exists() {
        println!("Setpoint is not running.");
        return Ok(ExitCode::SUCCESS);
    }
    let _lock = folder.lock()?;
    let stopped = stop(folder, &everyone(folder)).await;
    sweep(folder).await?;
    match stopped {
        0 => println!("Setpoint is not running."),
        count => println!(
            "Setpoint is down: {count} processes stopped; its objects are in {}",
            folder.shown(&folder.etcd())
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// Who may run, whatever they were told.
pub fn everyone(folder: &Folder) -> [Vec<Member>; 3] {
    let options = Up {
        fresh: false,
        port: 0,
        etcd_port: 0,
        etcd_peer_port: 0,
        profile: Profile::Standard,
    };
    stages(folder, &options)
}

/// Stops the stages, the last one first: controllers give their leases back while there is a gateway to take them,
/// and the gateway answers for as long as anyone asks. Answers how many ran.
pub async fn stop(folder: &Folder, stages: &[Vec<Member>]) -> usize {
    let mut count = 0;
    for stage in stages.iter().rev() {
        let running: Vec<_> = stage
            .iter()
            .filter_map(|member| Running::find(folder, &member.name))
            .collect();
        count += running.len();
        join_all(running.iter().map(end)).await;
        stage.iter().for_each(|member| forget(folder, &member.name));
    }
    count
}

async fn end(running: &Running) {
    match running.stop(PATIENCE).await {
        true => println!("  {:<26} stopped", running.name),
        false => println!(
            "  {:<26} killed: it did not stop within {PATIENCE:?}",
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
