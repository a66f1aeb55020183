//! `setpoint up`: starts a local cluster, or changes the running one, until all processes are ready.

mod options;
mod publish;
mod watch;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::bail;

use crate::advice::advised;
use crate::control_plane;
use crate::converge::Plan;
use crate::down::stop;
use crate::join;
use crate::launcher::{
    ClusterSpec, Component, Joined, ProcessSpec, RunningProcess, StateDir, network, port, program,
    proxy, sweep, topology,
};
use crate::pause::ensure_resumed;
use crate::style::{Colour, Style};
use crate::time_format::seconds;

pub use self::options::Options;

/// Starts, restarts and stops processes until the running cluster has the wanted size.
///
/// # Errors
/// A process does not start, or the cluster cannot have the wanted size.
pub async fn up(state_dir: &StateDir, options: &Options) -> anyhow::Result<ExitCode> {
    let code = bring_up(state_dir, options).await?;
    if options.watch {
        watch::watch(state_dir).await?;
    }
    Ok(code)
}

async fn bring_up(state_dir: &StateDir, options: &Options) -> anyhow::Result<ExitCode> {
    let _lock = state_dir.lock()?;
    let has_parts = !Component::all(state_dir)?.is_empty();
    if has_parts || !state_dir.has_cluster() && !Joined::all(state_dir).is_empty() {
        return up_joined(state_dir, options, has_parts).await;
    }
    ensure_resumed(state_dir).await?;
    let spec = options.apply_to(current_spec(state_dir)?)?;
    converge(state_dir, options, spec).await
}

/// Starts a cluster that does not run, as this spec says.
///
/// # Errors
/// As [`up`].
pub async fn again(state_dir: &StateDir, spec: ClusterSpec) -> anyhow::Result<ExitCode> {
    let _lock = state_dir.lock()?;
    converge(state_dir, &Options::of(&spec), spec).await
}

async fn converge(
    state_dir: &StateDir,
    options: &Options,
    mut spec: ClusterSpec,
) -> anyhow::Result<ExitCode> {
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
        print!("{}", next_steps(state_dir, &spec));
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
    if spec.network.machine().is_some() {
        publish::publish(state_dir, &spec).await?;
    }
    let ready = format!("Setpoint is ready after {}.", seconds(begin.elapsed()));
    println!("{}", Style::stdout().paint(Colour::Green, &ready));
    start_joined(state_dir).await;
    print!("{}", next_steps(state_dir, &spec));
    Ok(ExitCode::SUCCESS)
}

/// Starts what has joined from a state directory without a cluster.
async fn up_joined(
    state_dir: &StateDir,
    options: &Options,
    has_parts: bool,
) -> anyhow::Result<ExitCode> {
    if *options != Options::default() {
        bail!(
            "{} has agents or parts of a cluster elsewhere and none of its own: `up` starts them, without options",
            state_dir.shown(state_dir.state())
        );
    }
    if has_parts {
        ensure_resumed(state_dir).await?;
        start_parts(state_dir).await?;
    }
    match start_joined(state_dir).await {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

/// Starts the parts of a control plane that have joined. They learn which members of etcd and which gateways there are
/// now; with those of before, if none of these answers, or only once the parts of this machine run.
async fn start_parts(state_dir: &StateDir) -> anyhow::Result<()> {
    let before = Component::all(state_dir)?;
    if control_plane::refresh(state_dir).await.is_ok() {
        return join::start_all(state_dir).await;
    }
    join::start_all(state_dir).await?;
    match control_plane::refresh(state_dir).await {
        Ok(()) if Component::all(state_dir)? != before => join::start_all(state_dir).await,
        Ok(()) => Ok(()),
        Err(error) => {
            eprintln!(
                "Members of etcd and gateways that have joined since are not known here: {error:#}"
            );
            Ok(())
        }
    }
}

/// Starts those agents again that have joined and do not run. Returns whether all are ready. One that is not is no
/// failure of the cluster: its certificate may have expired, or its node was deleted.
async fn start_joined(state_dir: &StateDir) -> bool {
    let mut all_ready = true;
    for joined in Joined::all(state_dir) {
        let mut missing = topology::joined(state_dir, &joined);
        missing.retain(|process| RunningProcess::find(state_dir, &process.name).is_none());
        if missing.is_empty() {
            continue;
        }
        println!("Starting the agent of {}, which has joined", joined.node);
        if let Err(error) = join::start_node(state_dir, &missing).await {
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
                let name = &process.name;
                return Err(advised(
                    format!(
                        "{name} runs on port {runs}, not {wanted}; ./deploy/down first, or ask for {runs}"
                    ),
                    "./deploy/down",
                ));
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
fn next_steps(state_dir: &StateDir, spec: &ClusterSpec) -> String {
    if spec.network.machine().is_some() {
        return format!(
            "Try next:\n  \
             setpoint token create --for etcd, gateway or controller\n  \
             setpoint token create --for agent --node NAME\n  \
             export KUBECONFIG={}\n",
            state_dir.kubeconfig().display()
        );
    }
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
