//! `setpoint up`: starts a local cluster, or changes the running one, until all processes are ready.

use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::bail;
use clap::{Args, value_parser};

use crate::converge::{Plan, start};
use crate::down::stop;
use crate::launcher::{
    ClusterSpec, Joined, ProcessSpec, Profile, RunningProcess, StateDir, network, port, program,
    proxy, sweep, topology,
};
use crate::time_format::seconds;

/// The replicas of the cluster's DNS: one may be stopped.
const DNS_REPLICAS: usize = 2;

/// Options of `setpoint up`. A running cluster keeps the values of options that are not given.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Stop the running cluster and delete all objects first
    #[arg(long)]
    fresh: bool,
    /// Port of the Kubernetes API on 127.0.0.1 [default: 6443]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Client port of etcd on 127.0.0.1 [default: 2379]
    #[arg(long, value_name = "PORT")]
    etcd_port: Option<u16>,
    /// Number of gateways; further ones listen on the free ports after the first [default: 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u8).range(1..=16))]
    gateways: Option<u8>,
    /// Number of replicas of each controller and of the scheduler; one of them leads [default: 2]
    #[arg(long, value_name = "N", value_parser = value_parser!(u8).range(1..=16))]
    replicas: Option<u8>,
    /// Lease timing: how soon a standby takes over from a crashed leader [default: standard]
    #[arg(long, value_enum)]
    profile: Option<Profile>,
    /// Connect each controller, scheduler and node agent to the gateways through a relay of its own, which `chaos
    /// partition` can freeze; `--relays=false` removes the relays [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    relays: Option<bool>,
    /// Further DNS names or IPs at which clients reach the gateways, on their certificates; may be repeated
    #[arg(long, value_name = "HOST")]
    tls_san: Vec<String>,
    /// Further IPs that the gateways listen on, on their certificates, such as that of this machine in the network of
    /// Docker nodes; may be repeated
    #[arg(long, value_name = "IP")]
    listen: Vec<IpAddr>,
    /// Network of the Pods that are processes [default: auto]
    #[arg(long, value_enum, value_name = "MODE")]
    pod_network: Option<network::Mode>,
    /// Back end by which Services carry traffic on this machine [default: auto]
    #[arg(long, value_enum, value_name = "MODE")]
    proxy: Option<proxy::Mode>,
    /// Start two replicas of the cluster's DNS, on free ports from 1053 on. Pods with networks of their own ask them;
    /// without such networks, nothing is set up to do so. `--dns=false` removes them [default: true if Pods have
    /// networks of their own and Services carry traffic]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    dns: Option<bool>,
}

impl Options {
    /// Returns the `current` spec with the given options applied.
    fn apply_to(&self, current: ClusterSpec) -> anyhow::Result<ClusterSpec> {
        let mut spec = current;
        if let Some(port) = self.port.filter(|port| *port != spec.gateways[0]) {
            spec.gateways[0] = port;
        }
        spec.etcd = self.etcd_port.unwrap_or(spec.etcd);
        spec.profile = self.profile.unwrap_or(spec.profile);
        spec.relays = self.relays.unwrap_or(spec.relays);
        if !self.tls_san.is_empty() {
            spec.tls_sans.clone_from(&self.tls_san);
        }
        if !self.listen.is_empty() {
            spec.listen.clone_from(&self.listen);
        }
        spec.replicas = self.replicas.map_or(spec.replicas, usize::from);
        let gateways = self.gateways.map_or(spec.gateways.len(), usize::from);
        spec.resize(gateways)?;
        Ok(spec)
    }
}

impl Options {
    /// Decides what depends on this machine: the network of Pods, whether Services carry traffic, and DNS. What a
    /// running cluster has stays, unless an option asks for something else.
    fn decide(&self, state_dir: &StateDir, spec: &mut ClusterSpec) -> anyhow::Result<()> {
        let starts = spec.traffic.is_none();
        let traffic = match (self.proxy, spec.traffic) {
            (None, Some(kept)) => kept,
            (mode, _) => proxy::decide(state_dir, mode.unwrap_or_default())?,
        };
        spec.traffic = Some(traffic);
        if starts || self.fresh || self.pod_network.is_some() {
            let mode = self.pod_network.unwrap_or_default();
            spec.network = network::decide(state_dir, mode, traffic, self.fresh)?;
        }
        let asked = spec.network.has_bridge() && spec.carries_traffic();
        let dns = match (self.dns, starts) {
            (Some(wanted), _) => usize::from(wanted) * DNS_REPLICAS,
            (None, true) => usize::from(asked) * DNS_REPLICAS,
            (None, false) => spec.dns.len(),
        };
        spec.resize_dns(dns)
    }
}

/// Starts, restarts and stops processes until the running cluster has the wanted size.
pub async fn up(state_dir: &StateDir, options: &Options) -> anyhow::Result<ExitCode> {
    let _lock = state_dir.lock()?;
    if !state_dir.has_cluster() && !Joined::all(state_dir).is_empty() {
        return up_joined(state_dir, options).await;
    }
    let mut spec = options.apply_to(current_spec(state_dir)?)?;
    options.decide(state_dir, &mut spec)?;
    let stages = topology::stages(state_dir, &spec);
    for service in stages.iter().flatten().map(|process| process.service) {
        program(service)?;
    }
    if options.fresh {
        stop(state_dir, &state_dir.recorded()).await;
        sweep(state_dir)?;
        state_dir.clear()?;
    }
    // Before any process starts: those of a cluster that was stopped may have expired.
    state_dir.pki().ensure(stages.iter().flatten())?;
    let plan = Plan::compute(state_dir, &stages);
    if plan.is_empty() {
        spec.save(state_dir)?;
        state_dir.write_kubeconfig(spec.gateways[0])?;
        println!("Setpoint is running already; nothing was changed.");
        start_joined(state_dir).await;
        print!("{}", next_steps(state_dir));
        return Ok(ExitCode::SUCCESS);
    }
    check_ports_kept(state_dir, &stages)?;
    check_ports_free(&plan.missing)?;
    announce(state_dir, &plan, stages.iter().map(Vec::len).sum());
    let begin = Instant::now();
    spec.save(state_dir)?;
    if spec.network.has_bridge() {
        let local = spec.traffic == Some(proxy::Traffic::Userspace);
        network::bridge::ensure(spec.network, topology::NODES.len(), local)?;
    }
    let has_table = spec.traffic == Some(proxy::Traffic::Nftables);
    if has_table {
        proxy::remember(state_dir)?;
    }
    plan.execute(state_dir).await?;
    if !has_table {
        proxy::forget(state_dir)?;
    }
    if !spec.network.has_bridge() {
        network::bridge::remove(spec.network)?;
    }
    state_dir.write_kubeconfig(spec.gateways[0])?;
    println!("Setpoint is ready after {}.", seconds(begin.elapsed()));
    start_joined(state_dir).await;
    print!("{}", next_steps(state_dir));
    Ok(ExitCode::SUCCESS)
}

/// Starts the agents of a state directory without a cluster.
async fn up_joined(state_dir: &StateDir, options: &Options) -> anyhow::Result<ExitCode> {
    if *options != Options::default() {
        bail!(
            "{} has agents of a cluster elsewhere and none of its own: `up` starts them, without options",
            state_dir.shown(state_dir.state())
        );
    }
    match start_joined(state_dir).await {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

/// Starts those agents again that have joined and do not run. Returns whether all are ready. One that is not is no
/// failure of the cluster: its certificate may have expired, or its node was deleted.
async fn start_joined(state_dir: &StateDir) -> bool {
    let mut all_ready = true;
    for joined in Joined::all(state_dir) {
        let process = topology::joined_agent(state_dir, &joined);
        if RunningProcess::find(state_dir, &process.name).is_some() {
            continue;
        }
        println!("Starting the agent of {}, which has joined", joined.node);
        if let Err(error) = start(state_dir, std::slice::from_ref(&process)).await {
            eprintln!("{error:#}");
            all_ready = false;
        }
    }
    all_ready
}

/// Returns the spec of the running cluster, or the default if none of its processes runs.
fn current_spec(state_dir: &StateDir) -> anyhow::Result<ClusterSpec> {
    let mut recorded = state_dir.recorded().into_iter();
    let spec = match recorded.any(|name| RunningProcess::find(state_dir, &name).is_some()) {
        true => ClusterSpec::load(state_dir)?,
        false => None,
    };
    let spec = spec.filter(|spec| !spec.gateways.is_empty());
    Ok(spec.unwrap_or_default())
}

fn announce(state_dir: &StateDir, plan: &Plan, all: usize) {
    let count = plan.count();
    if count == all {
        let logs = state_dir.state().join("log");
        println!(
            "Starting Setpoint: {all} processes, logs in {}",
            state_dir.shown(&logs)
        );
    } else if count > 0 {
        println!("Starting the {count} of {all} processes that do not run");
    }
    if !plan.outdated.is_empty() {
        let count = plan.outdated.len();
        println!("Restarting {count} processes with changed options, one at a time");
    }
    if !plan.surplus.is_empty() {
        println!("Stopping {} surplus processes", plan.surplus.len());
    }
}

/// Fails if a running process listens on another port than the spec says: new processes could not reach it.
fn check_ports_kept(state_dir: &StateDir, stages: &[Vec<ProcessSpec>]) -> anyhow::Result<()> {
    for process in stages.iter().flatten() {
        let runs =
            RunningProcess::find(state_dir, &process.name).and_then(|running| running.port());
        match (runs, process.port) {
            (Some(runs), Some(wanted)) if runs != wanted => {
                bail!(
                    "{} runs on port {runs}, not {wanted}; ./deploy/down first, or ask for {runs}",
                    process.name
                )
            }
            _ => {}
        }
    }
    Ok(())
}

/// Fails if another process uses one of the required ports.
fn check_ports_free(missing: &[Vec<ProcessSpec>]) -> anyhow::Result<()> {
    for process in missing.iter().flatten() {
        if let Some(port) = process.port {
            port::check(port, &process.name)?;
        }
    }
    Ok(())
}

/// Returns the commands to try next.
fn next_steps(state_dir: &StateDir) -> String {
    let example = Path::new("deploy/manifests/web-frontend.yaml");
    format!(
        "Try next:\n  \
         export KUBECONFIG={}\n  \
         kubectl apply -f {}\n  \
         kubectl get deploy,rs,pods -n production -o wide\n",
        state_dir.kubeconfig().display(),
        example.display(),
    )
}
