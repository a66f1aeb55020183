//! `setpoint up`: from nothing, or from what is left, to a cluster that is ready.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures::stream::{FuturesUnordered, TryStreamExt};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::Up;
use crate::down::{stop, sweep};
use crate::folder::Folder;
use crate::launch::{self, Started};
use crate::member::Running;
use crate::port;
use crate::roster::{Member, stages};

/// Starts whatever does not run yet. A cluster that runs is left as it is.
pub async fn up(folder: &Folder, options: &Up) -> anyhow::Result<ExitCode> {
    let _lock = folder.lock()?;
    let everyone = stages(folder, options);
    for service in everyone.iter().flatten().map(|member| member.service) {
        launch::program(service)?;
    }
    if options.fresh {
        stop(folder, &everyone).await;
        sweep(folder).await?;
        folder.clear()?;
    }
    let missing = everyone.each_ref().map(|stage| missing(folder, stage));
    let (count, all) = (total(&missing), total(&everyone));
    if count == 0 {
        println!("Setpoint is running already; nothing was changed.");
        print!("{}", farewell(folder));
        return Ok(ExitCode::SUCCESS);
    }
    agree(folder, &everyone)?;
    claim(&missing, options)?;
    match count == all {
        true => println!(
            "Starting Setpoint: {all} processes, logs in {}",
            folder.shown(&folder.state().join("log"))
        ),
        false => println!(
            "Setpoint runs in part: starting the {count} of {all} processes that are missing"
        ),
    }
    let begin = Instant::now();
    bring(folder, &missing).await?;
    write_kubeconfig(folder, options.port)?;
    println!("Setpoint is ready after {}.", seconds(begin.elapsed()));
    print!("{}", farewell(folder));
    Ok(ExitCode::SUCCESS)
}

fn missing(folder: &Folder, stage: &[Member]) -> Vec<Member> {
    stage
        .iter()
        .filter(|member| Running::find(folder, &member.name).is_none())
        .cloned()
        .collect()
}

fn total(stages: &[Vec<Member>]) -> usize {
    stages.iter().map(Vec::len).sum()
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
fn claim(missing: &[Vec<Member>], options: &Up) -> anyhow::Result<()> {
    for member in missing.iter().flatten() {
        if let Some(port) = member.port {
            port::check(port, &member.name)?;
        }
        if member.service == "etcd" {
            port::check(options.etcd_peer_port, "etcd-0's peers")?;
        }
    }
    Ok(())
}

/// Starts the stages one after the other; if that fails, or is interrupted, stops again whatever it started.
async fn bring(folder: &Folder, missing: &[Vec<Member>]) -> anyhow::Result<()> {
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    let starting = async {
        for stage in missing {
            start(folder, stage).await?;
        }
        anyhow::Ok(())
    };
    let outcome = tokio::select! {
        outcome = starting => outcome,
        _ = interrupt.recv() => Err(anyhow::anyhow!("interrupted")),
        _ = terminate.recv() => Err(anyhow::anyhow!("interrupted")),
    };
    if outcome.is_err() {
        stop(folder, missing).await;
        if missing
            .iter()
            .flatten()
            .any(|member| member.service == "node-agent")
        {
            sweep(folder).await?;
        }
    }
    outcome
}

/// Starts one stage, all at once, and waits until each is ready.
async fn start(folder: &Folder, stage: &[Member]) -> anyhow::Result<()> {
    let ports = port::free(stage.len())?;
    let started = stage.iter().zip(ports).map(|(member, free)| {
        let started = launch::start(folder, member, member.port.unwrap_or(free))?;
        Ok((member, started))
    });
    let started: anyhow::Result<Vec<_>> = started.collect();
    let waiting: FuturesUnordered<_> = started?
        .into_iter()
        .map(|(member, started)| watch(member, started))
        .collect();
    waiting.try_collect().await
}

async fn watch(member: &Member, mut started: Started<'_>) -> anyhow::Result<()> {
    let took = started.ready().await?;
    println!("  {:<26} ready after {}", member.name, seconds(took));
    Ok(())
}

fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
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
