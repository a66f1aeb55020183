//! Ends every container of a state folder, for a machine that is to be left empty.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::timeout;

use super::adopt::{containers, subfolders};
use super::folder::Folder;

/// Stops the containers that still run below `state` as a machine does that is switched off, and says how many they were.
///
/// Their files stay: an agent that comes back finds that they ended, and starts them again if their Pods are still wanted.
///
/// # Errors
/// When the files cannot be read, or an agent uses them: it would start again what is stopped.
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
    Ok(ended.into_iter().filter(|ran| *ran).count())
}

async fn end(folder: &Folder, grace: Duration) -> io::Result<bool> {
    let shim = folder.shim()?.map_or(Ok(None), |shim| shim.hold())?;
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
