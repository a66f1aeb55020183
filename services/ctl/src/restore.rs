//! `setpoint restore`: gives a cluster the objects of a backup.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use jiff::Timestamp;
use setpoint_store::backup::{self, Restored, Snapshot};
use setpoint_store::etcd::{Etcd, Settings};
use tokio::signal::unix::{SignalKind, signal};

use crate::backup::{open, summary};
use crate::control_plane;
use crate::converge::{Plan, start};
use crate::down::stop;
use crate::etcd_options;
use crate::launcher::topology::{self, service_of};
use crate::launcher::{ClusterSpec, Network, StateDir, port};
use crate::time_format::seconds;

/// The number of keys between two messages about the progress.
const PROGRESS: usize = 10_000;

/// Options of `setpoint restore`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// File of `setpoint backup` or `etcdctl snapshot save`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Leave out the keys that sign tokens of ServiceAccounts: the gateways make a new one, and refuse all tokens from
    /// before
    #[arg(long)]
    new_token_keys: bool,
    #[command(flatten)]
    etcd: etcd_options::Options,
}

/// Restores a backup: into the etcd that was named, which must be empty, or in place of the objects of the local
/// cluster.
pub async fn restore(state_dir: &StateDir, options: &Options) -> anyhow::Result<ExitCode> {
    let snapshot = open(&options.file)?;
    let contents = snapshot.contents().context("cannot read the snapshot")?;
    print!("{}", summary(&contents));
    if !contents.unreadable.is_empty() {
        println!("Objects that cannot be read are restored as they are.");
    }
    let begin = Instant::now();
    let restored = match options.etcd.named()? {
        Some(settings) => write(&settings, &snapshot, options).await?,
        None => Local::new(state_dir)?.restore(&snapshot, options).await?,
    };
    println!(
        "{} objects were restored after {}; {} Leases were left out, and are made again by their holders.",
        restored.objects,
        seconds(begin.elapsed()),
        restored.leases,
    );
    Ok(ExitCode::SUCCESS)
}

async fn write(
    settings: &Settings,
    snapshot: &Snapshot,
    options: &Options,
) -> anyhow::Result<Restored> {
    let store = Etcd::connect(settings).await?;
    let progress = |keys: usize| {
        if keys.is_multiple_of(PROGRESS) {
            println!("  {keys} keys");
        }
    };
    let restored = backup::Options {
        new_token_keys: options.new_token_keys,
    };
    let restored = backup::restore(&store, snapshot, restored, progress).await;
    restored.context("the backup was not restored")
}

/// The local cluster, whose gateways and etcd are stopped for a restore. Its other processes keep running: they are
/// clients, as on other machines.
struct Local<'a> {
    state_dir: &'a StateDir,
    spec: ClusterSpec,
    _lock: nix::fcntl::Flock<fs::File>,
}

impl<'a> Local<'a> {
    fn new(state_dir: &'a StateDir) -> anyhow::Result<Self> {
        let lock = state_dir.lock()?;
        let machine = Network::load(state_dir)?.and_then(Network::machine);
        let spec = match ClusterSpec::load(state_dir)? {
            _ if state_dir.components().exists() => bail!(
                "the cluster was started on another machine: restore it there, with one member of etcd"
            ),
            Some(spec) => spec,
            None if machine.is_some() => bail!(
                "a cluster of several machines is restored while it runs: `setpoint up` starts it"
            ),
            // Nothing runs, and the next `up` chooses the ports.
            None => ClusterSpec {
                etcd: port::free(1)?[0],
                ..ClusterSpec::default()
            },
        };
        Ok(Self {
            state_dir,
            spec,
            _lock: lock,
        })
    }

    async fn restore(self, snapshot: &Snapshot, options: &Options) -> anyhow::Result<Restored> {
        self.check_members().await?;
        let stages = topology::stages(self.state_dir, &self.spec);
        self.state_dir.pki().ensure(stages.iter().flatten())?;
        println!("Stopping the gateways and etcd");
        let was_serving = self.stop("gateway").await > 0;
        let was_running = self.stop("etcd").await > 0;
        let restored = self.replace(snapshot, options).await;
        if !was_running {
            self.stop("etcd").await;
        }
        let missing = Plan::compute(self.state_dir, &stages);
        let started = match (was_serving, was_running) {
            (true, _) => missing.execute(self.state_dir).await,
            (false, true) if restored.is_err() => self.start_etcd().await,
            (false, _) => Ok(()),
        };
        // The first error is the cause of the other.
        let restored = restored?;
        started.context("the backup was restored, but the cluster does not start")?;
        Ok(restored)
    }

    /// Fails if etcd has members on other machines: they would keep their data.
    async fn check_members(&self) -> anyhow::Result<()> {
        if self.spec.network.machine().is_none() {
            return Ok(());
        }
        let plane = control_plane::recorded(self.state_dir)?;
        let members = control_plane::membership(self.state_dir, &plane).await?;
        let members = members.list().await?;
        if members.len() > 1 {
            bail!(
                "etcd has {} members: remove the others (`setpoint members --remove`), restore, and let them join again",
                members.len()
            );
        }
        Ok(())
    }

    /// Puts the backup in the place of the data of etcd, which is stopped. After a failure they are back.
    async fn replace(&self, snapshot: &Snapshot, options: &Options) -> anyhow::Result<Restored> {
        let (mut interrupt, mut terminate) = (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        );
        let aside = self.put_aside()?;
        let restored = tokio::select! {
            restored = self.fill(snapshot, options) => restored,
            _ = interrupt.recv() => Err(anyhow!("interrupted")),
            _ = terminate.recv() => Err(anyhow!("interrupted")),
        };
        match restored {
            Ok(restored) => Ok(restored),
            Err(error) => match self.put_back(&aside).await {
                Ok(()) => Err(error),
                Err(second) => Err(error.context(format!("{second:#}"))),
            },
        }
    }

    /// Stops the processes of a service. Returns how many ran.
    async fn stop(&self, service: &str) -> usize {
        let names = self.state_dir.recorded().into_iter();
        let names: Vec<_> = names.filter(|name| service_of(name) == service).collect();
        stop(self.state_dir, &names).await
    }

    /// Moves the data of etcd, if there are any, and returns their new path.
    fn put_aside(&self) -> anyhow::Result<PathBuf> {
        let etcd = self.state_dir.etcd();
        let now = Timestamp::now().strftime("%Y-%m-%dT%H-%M-%S");
        let aside = etcd.with_file_name(format!("etcd.{now}"));
        if aside.exists() {
            bail!("{} exists already", aside.display());
        }
        if etcd.exists() {
            fs::rename(&etcd, &aside).with_context(|| format!("cannot move {}", etcd.display()))?;
            let shown = self.state_dir.shown(&aside);
            println!("The data from before are in {shown}");
        }
        Ok(aside)
    }

    async fn start_etcd(&self) -> anyhow::Result<()> {
        let etcd = topology::etcd(self.state_dir, &self.spec);
        start(self.state_dir, std::slice::from_ref(&etcd)).await
    }

    /// Starts a new etcd and writes the backup into it.
    async fn fill(&self, snapshot: &Snapshot, options: &Options) -> anyhow::Result<Restored> {
        self.start_etcd().await?;
        let settings = etcd_options::local(self.state_dir, &self.spec)?;
        write(&settings, snapshot, options).await
    }

    /// Puts the data from before back after a failure.
    async fn put_back(&self, aside: &PathBuf) -> anyhow::Result<()> {
        self.stop("etcd").await;
        let etcd = self.state_dir.etcd();
        if etcd.exists() {
            fs::remove_dir_all(&etcd)
                .with_context(|| format!("cannot delete {}", etcd.display()))?;
        }
        if aside.exists() {
            fs::rename(aside, &etcd)
                .with_context(|| format!("the data from before are in {}", aside.display()))?;
        }
        Ok(())
    }
}
