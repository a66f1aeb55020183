//! Takes a snapshot of a running etcd.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::timeout;

use super::{Error, Snapshot};
use crate::etcd::{self, Settings};

/// The time that etcd may take for the next part of a snapshot.
const STALL: Duration = Duration::from_secs(30);

/// Writes a snapshot of a member to a new file, which only its owner can read, and checks it.
/// Calls `progress` with the number of bytes so far.
///
/// The file gets its name once it is whole and on the disk.
///
/// # Errors
/// The member cannot be reached or ends the snapshot, the file exists or cannot be written, or the check has failed.
pub async fn save(
    settings: &Settings,
    path: &Path,
    progress: impl FnMut(u64),
) -> Result<Snapshot, Error> {
    if path.exists() {
        let exists = format!("{} exists already", path.display());
        return Err(std::io::Error::new(std::io::ErrorKind::AlreadyExists, exists).into());
    }
    let partial = partial(path);
    let options = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .clone();
    let file = options.open(&partial).map_err(|error| {
        let text = format!(
            "{}: {error}; it may be left of a backup that was interrupted",
            partial.display()
        );
        std::io::Error::new(error.kind(), text)
    })?;
    let saved = async {
        receive(settings, file, progress).await?;
        let snapshot = Snapshot::open(&partial)?;
        // Unlike a rename, this fails if somebody has made the file meanwhile.
        fs::hard_link(&partial, path)?;
        fs::remove_file(&partial)?;
        Ok(snapshot)
    };
    let saved = saved.await;
    if saved.is_err() {
        // The error that is returned says more than a second one would.
        let _ = fs::remove_file(&partial);
    }
    saved
}

async fn receive(
    settings: &Settings,
    file: File,
    mut progress: impl FnMut(u64),
) -> Result<(), Error> {
    let mut maintenance = etcd::client(settings).await?.maintenance_client();
    let mut parts = maintenance.snapshot().await.map_err(unavailable)?;
    let mut file = BufWriter::new(file);
    let mut received = 0;
    loop {
        let part = timeout(STALL, parts.message()).await;
        let part = part.map_err(|_| crate::Error::Timeout)?;
        let Some(part) = part.map_err(unavailable)? else {
            break;
        };
        file.write_all(part.blob())?;
        received += part.blob().len() as u64;
        progress(received);
    }
    let file = file
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error)?;
    Ok(file.sync_all()?)
}

fn unavailable(error: etcd_client::Error) -> Error {
    crate::Error::Unavailable(error.to_string()).into()
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}
