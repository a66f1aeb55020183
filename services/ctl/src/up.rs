//! `setpoint up`: from nothing, or from what is left, to a cluster that is ready.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::{Args, value_parser};

use crate::bring::{Change, seconds};
use crate::down::{stop, sweep};
use crate::folder::Folder;
use crate::launch;
use crate::member::Running;
use crate::port;
use crate::roster::{Member, stages};
use crate::shape::{Profile, Shape};

/// How to bring the cluster up. What is not asked for stays as it is in a cluster that runs.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// Start empty: stop what runs and delete all objects first
    #[arg(long)]
    fresh: bool,
    /// Port of the API, on loopback [default: 6443]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Client port of etcd, on loopback [default: 2379]
    #[arg(long, value_name = "PORT")]
    etcd_port: Option<u16>,
    /// Peer port of etcd, on loopback [default: 2380]
    #[arg(long, value_name = "PORT")]
    etcd_peer_port: Option<u16>,
    /// Gateways, the further ones on free ports after that of the first [default: 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u8).range(1..=16))]
    gateways: Option<u8>,
    /// Replicas of each controller and of the scheduler, of which one leads [default: 2]
    #[arg(long, value_name = "N", value_parser = value_parser!(u8).range(1..=16))]
    replicas: Option<u8>,
    /// How soon a standby takes over from a leader that crashed [default: standard]
    #[arg(long, value_enum)]
    profile: Option<Profile>,
    /// Connect each controller, scheduler and node agent to the gateways through a relay of its own, which `chaos
    /// partition` can silence; `--relays=false` takes them out again [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    relays: Option<bool>,
}

impl Options {
    /// What is asked for, and otherwise what is there.
    fn shape(&self, there: Shape) -> anyhow::Result<Shape> {
        let mut shape = there;
        if let Some(port) = self.port.filter(|port| *port != shape.gateways[0]) {
            shape.gateways[0] = port;
        }
        shape.etcd = self.etcd_port.unwrap_or(shape.etcd);
        shape.etcd_peer = self.etcd_peer_port.unwrap_or(shape.etcd_peer);
        shape.profile = self.profile.unwrap_or(shape.profile);
        shape.relays = self.relays.unwrap_or(shape.relays);
        shape.replicas = self.replicas.map_or(shape.replicas, usize::from);
        let gateways = self.gateways.map_or(shape.gateways.len(), usize::from);
        shape.resize(gateways)?;
        Ok(shape)
    }
}

/// Starts whatever does not run yet, and stops what is not asked for any more.
pub async fn up(folder: &Folder, options: &Options) -> anyhow::Result<ExitCode> {
    let _lock = folder.lock()?;
    let shape = options.shape(there(folder)?)?;
    let everyone = stages(folder, &shape);
    for service in everyone.iter().flatten().map(|member| member.service) {
        launch::program(service)?;
    }
    if options.fresh {
        stop(folder, &folder.recorded()).await;
        sweep(folder).await?;
        folder.clear()?;
    }
    let change = Change::of(folder, &everyone);
    if change.is_none() {
        println!("Setpoint is running already; nothing was changed.");
        print!("{}", farewell(folder));
        return Ok(ExitCode::SUCCESS);
    }
    agree(folder, &everyone)?;
    claim(&change.missing, &shape)?;
    announce(folder, &change, everyone.iter().map(Vec::len).sum());
    let begin = Instant::now();
    shape.save(folder)?;
    change.carry_out(folder).await?;
    write_kubeconfig(folder, shape.gateways[0])?;
    println!("Setpoint is ready after {}.", seconds(begin.elapsed()));
    print!("{}", farewell(folder));
    Ok(ExitCode::SUCCESS)
}

/// The shape of the cluster that runs here, at least in part.
fn there(folder: &Folder) -> anyhow::Result<Shape> {
    let mut recorded = folder.recorded().into_iter();
    let shape = match recorded.any(|name| Running::find(folder, &name).is_some()) {
        true => Shape::load(folder)?,
        false => None,
    };
    let shape = shape.filter(|shape| !shape.gateways.is_empty());
    Ok(shape.unwrap_or_default())
}

fn announce(folder: &Folder, change: &Change, all: usize) {
    let count = change.count();
    if count == all {
        let logs = folder.state().join("log");
        println!(
            "Starting Setpoint: {all} processes, logs in {}",
            folder.shown(&logs)
        );
    } else if count > 0 {
        println!("Setpoint runs in part: starting the {count} of {all} processes that are missing");
    }
    if !change.misinformed.is_empty() {
        let count = change.misinformed.len();
        println!(
            "Restarting {count} processes, one after the other, to tell them what has changed"
        );
    }
    if !change.surplus.is_empty() {
        println!("Stopping {} processes too many", change.surplus.len());
    }
}

/// What runs must be where the newcomers will look for it.
fn agree(folder: &Folder, everyone: &[Vec<Member>]) -> anyhow::Result<()> {
    for member in everyone.iter().flatten() {
        let runs = Running::find(folder, &member.name).and_then(|running| running.port());
        match (runs, member.port) {
            (Some(runs), Some(wanted)) if runs != wanted => {
                bail!(
                    "{} runs on port {runs}, not {wanted}; ./deploy/down first, or ask for {runs}",
                    member.name
                )
            }
            _ => {}
        }
    }
    Ok(())
}

/// Are the ports free that cannot be chosen freely?
fn claim(missing: &[Vec<Member>], shape: &Shape) -> anyhow::Result<()> {
    for member in missing.iter().flatten() {
        if let Some(port) = member.port {
            port::check(port, &member.name)?;
        }
        if member.service == "etcd" {
            port::check(shape.etcd_peer, "etcd-0's peers")?;
        }
    }
    Ok(())
}

fn write_kubeconfig(folder: &Folder, port: u16) -> anyhow::Result<()> {
    let path = folder.kubeconfig();
    fs::write(&path, kubeconfig(port)).with_context(|| format!("cannot write {}", path.display()))
}

fn kubeconfig(port: u16) -> String {
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         current-context: setpoint\n\
         contexts:\n\
         - name: setpoint\n  context: {{cluster: setpoint, user: admin}}\n\
         clusters:\n\
         - name: setpoint\n  cluster: {{server: 'http://127.0.0.1:{port}'}}\n\
         users:\n\
         - name: admin\n  user: {{}}\n"
    )
}

/// What to type next.
fn farewell(folder: &Folder) -> String {
    let example = Path::new("deploy/manifests/web-frontend.yaml");
    format!(
        "Try next:\n  \
         export KUBECONFIG={}\n  \
         kubectl apply -f {}\n  \
         kubectl get deploy,rs,pods -n production -o wide\n",
        folder.kubeconfig().display(),
        example.display(),
    )
}
