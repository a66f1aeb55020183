//! Stops all containers of a state directory.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::timeout;

use super::adopt::{containers, subfolders};
use super::folder::Folder;
use super::network;

/// Stops the running containers below `state`; returns their number.
///
/// Their files are kept. A restarted agent finds that they ended, and restarts them if their Pods still exist.
///
/// # Errors
/// If the files cannot be read, or an agent is using them, which would restart the containers.
pub async fn sweep(state: &Path, grace: Duration) -> io::Result<usize> {
    let _lock = super::lock(state)?;
    let pods = match subfolders(&state.join("pods")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        pods => pods?,
    };
    let folders: Vec<_> = pods
        .iter()
        .map(|pod| containers(pod))
        .collect::<Result<_, _>>()?;
    let ends = folders.iter().flatten().map(|folder| end(folder, grace));
    let ended = futures::future::try_join_all(ends).await?;
    network::sweep(state).await?;
    Ok(ended.into_iter().filter(|ran| *ran).count())
}

async fn end(folder: &Folder, grace: Duration) -> io::Result<bool> {
    let shim = folder.shim()?.map_or(Ok(None), |shim| shim.open())?;
    let Some(shim) = shim else {
        return Ok(false);
    };
    shim.signal(Signal::TERM);
    if timeout(grace, shim.gone()).await.is_err() {
        shim.signal(Signal::USR1);
        shim.gone().await;
    }
    Ok(true)
}
