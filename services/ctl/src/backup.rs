//! `setpoint backup`: saves a cluster's objects to a file, and checks such files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Args;
use setpoint_store::backup::{self, Contents, Snapshot};

use crate::etcd_options;
use crate::launcher::{ClusterSpec, StateDir};
use crate::time_format::seconds;

/// The number of bytes between two messages about the progress.
const PROGRESS: u64 = 256 << 20;
/// The number of unreadable objects that are named.
const NAMED: usize = 10;

/// Options of `setpoint backup`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// File to write: a snapshot of etcd. It has all Secrets and the keys that sign tokens; only its owner can read it
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Check an existing file instead, and list what it has
    #[arg(long, conflicts_with_all = ["etcd"])]
    check: bool,
    #[command(flatten)]
    etcd: etcd_options::Options,
}

/// Saves a snapshot, or checks one, and prints its content.
pub async fn backup(state_dir: &StateDir, options: &Options) -> anyhow::Result<ExitCode> {
    let begin = Instant::now();
    let snapshot = match options.check {
        true => open(&options.file)?,
        false => save(state_dir, options).await?,
    };
    let contents = snapshot.contents().context("cannot read the snapshot")?;
    print!("{}", summary(&contents));
    if !options.check {
        let took = seconds(begin.elapsed());
        println!("{} was written after {took}.", options.file.display());
    }
    match contents.unreadable.len() {
        0 => Ok(ExitCode::SUCCESS),
        count => bail!("{count} objects in it cannot be read"),
    }
}

/// Opens a backup and checks that it is whole.
///
/// # Errors
/// The file cannot be read, or is none.
pub fn open(file: &Path) -> anyhow::Result<Snapshot> {
    Snapshot::open(file).with_context(|| format!("cannot use {}", file.display()))
}

async fn save(state_dir: &StateDir, options: &Options) -> anyhow::Result<Snapshot> {
    let settings = match options.etcd.named()? {
        Some(settings) => settings,
        None => {
            let spec = ClusterSpec::load(state_dir)?.unwrap_or_default();
            etcd_options::local(state_dir, &spec)?
        }
    };
    let mut next = PROGRESS;
    let progress = |bytes: u64| {
        if bytes >= next {
            println!("  {} MiB", bytes >> 20);
            next = bytes.saturating_add(PROGRESS);
        }
    };
    let saved = backup::save(&settings, &options.file, progress).await;
    saved.with_context(|| format!("cannot write {}", options.file.display()))
}

/// Returns the content of a backup, a line for each resource.
pub fn summary(contents: &Contents) -> String {
    let all: usize = contents.objects.values().sum();
    let mut text = format!("Revision {}, {all} objects", contents.revision);
    if contents.encrypted > 0 {
        text += &format!(", {} of them encrypted at rest", contents.encrypted);
    }
    text += ":\n";
    for (resource, count) in &contents.objects {
        text += &format!("  {count:>7} {}\n", resource.escape_debug());
    }
    for key in contents.unreadable.iter().take(NAMED) {
        text += &format!("  cannot be read: {}\n", key.escape_debug());
    }
    text
}
