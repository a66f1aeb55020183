//! Runs the Pods that are bound to its nodes, and reports how they fare.
//!
//! ```text
//! watch: Pods of its nodes ─┐
//! runtime: something changed ┴▶ queue ─▶ observe → plan → act, until nothing is left ─▶ status ─▶ gateway
//! ```
//! The runtime holds what is, the gateway what should be; the agent itself remembers nothing that a restart would lose.

mod act;
mod agent;
mod environment;
mod ledger;
mod metrics;
mod node;
mod plan;
mod pod;
mod restart;
pub mod runtime;
mod settings;
mod status;
mod tell;
mod world;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::join_all;
use setpoint_host::Host;
use setpoint_machinery::gateway::ListOptions;
use setpoint_machinery::queue::Limiter;
use setpoint_machinery::{Barrier, Gateway, Informer, Queue, Recorder};
use setpoint_model::Key;
use tracing::info;

pub use act::Hands;
pub use agent::Agent;
pub use ledger::{Admission, Ledger, Room, Shortage};
pub use node::heartbeat::Heartbeat;
pub use node::{Machine, Node};
pub use plan::{Action, plan};
pub use pod::PodView;
pub use settings::{Capacity, Kind, Settings, Switch};
pub use status::status;
pub use tell::Tell;
pub use world::{Bound, Trouble, World};

use runtime::process::{Processes, shim, sweep};
use runtime::simulated::Simulated;
use runtime::{Runtime, Wake};

/// How long containers get to stop when everything is swept away.
const SWEEP_GRACE: Duration = Duration::from_secs(2);

/// What the binary does other than being an agent: `shim <folder>`, `pause`, `sweep <state-dir>`.
pub fn subcommand(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let args: Vec<_> = args.into_iter().collect();
    match args.as_slice() {
        [name, folder] if name == "shim" => Some(shim::main(Path::new(folder))),
        [name] if name == "pause" => Some(shim::pause()),
        [name, state] if name == "sweep" => Some(sweep_away(Path::new(state))),
        _ => None,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn sweep_away(state: &Path) -> ExitCode {
    match sweep(state, SWEEP_GRACE).await {
        Ok(count) => {
            println!("stopped {count} containers");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("node-agent: cannot read {}: {error}", state.display());
            ExitCode::FAILURE
        }
    }
}

/// Runs the agent until shutdown.
///
/// # Errors
/// When the gateway's address is none, or the state of earlier containers cannot be read.
pub async fn start(host: Host, settings: Settings) -> anyhow::Result<()> {
    let machine = Machine::read();
    let nodes = Node::all(&settings, host.instance(), &machine);
    let queue = Queue::new("pods", Limiter::default());
    let waker = queue.clone();
    let wake: Wake = Arc::new(move |pod: &Key| waker.add(pod.clone(), None));
    match settings.runtime {
        Kind::Process => {
            let state = state_dir(&settings, &nodes[0].name);
            let runtime = Processes::open(&state, "/proc/self/exe", wake);
            let runtime =
                runtime.with_context(|| format!("state directory {}", state.display()))?;
            serve(host, settings, machine, nodes, queue, runtime).await
        }
        Kind::Simulated => {
            let runtime = Simulated::new(settings.start_delay, wake);
            serve(host, settings, machine, nodes, queue, runtime).await
        }
    }
}

fn state_dir(settings: &Settings, node: &str) -> PathBuf {
    match settings.state_dir.as_os_str().is_empty() {
        true => Path::new(".setpoint/node").join(node),
        false => settings.state_dir.clone(),
    }
}

async fn serve<R: Runtime>(
    host: Host,
    settings: Settings,
    machine: Machine,
    nodes: Vec<Node>,
    queue: Queue<Key>,
    runtime: R,
) -> anyhow::Result<()> {
    let gateway = Gateway::connect(&settings.gateway, host.instance())?;
    let informer = informer(&gateway, &nodes, &queue);
    let pods = informer.reader();
    let mut barrier = Barrier::default();
    barrier.watch(&pods);
    let recorder = settings
        .writes_events()
        .then(|| Recorder::new(gateway.clone(), "kubelet", &nodes[0].name));
    let agent = Arc::new(Agent {
        hands: Hands {
            runtime,
            gateway: gateway.clone(),
            tell: Tell::new(recorder),
        },
        ledger: Ledger::new(nodes.iter().map(|node| (node.name.clone(), node.room))),
        nodes: nodes
            .iter()
            .map(|node| (node.name.clone(), node.clone()))
            .collect::<HashMap<_, _>>(),
        pods: pods.clone(),
        barrier,
        queue,
    });
    let (cached, shutdown) = (host.health().check("informers"), host.shutdown());
    let alive = heartbeats(&host, &settings, &machine, nodes, &gateway);
    let work = async {
        pods.synced().await;
        cached.pass();
        info!(pods = pods.len(), "the cache is complete");
        agent.run(settings.workers, shutdown.clone()).await;
    };
    tokio::select! {
        () = work => {}
        ((), ()) = async { tokio::join!(informer.run(shutdown.clone()), alive) } => {}
    }
    Ok(())
}

/// One node watches its own Pods; many share one watch over all Pods that are bound.
fn informer(gateway: &Gateway, nodes: &[Node], queue: &Queue<Key>) -> Informer<PodView> {
    let fields = match nodes {
        [node] => format!("spec.nodeName={}", node.name),
        _ => "spec.nodeName!=".to_owned(),
    };
    let names: Vec<_> = nodes.iter().map(|node| node.name.clone()).collect();
    let ours = move |view: &PodView| names.contains(&view.node);
    let queue = queue.clone();
    gateway
        .informer::<PodView>()
        .only(ListOptions {
            fields,
            ..ListOptions::default()
        })
        .on_event(move |delta| {
            let views = [&delta.new, &delta.old];
            if let Some(view) = views.into_iter().flatten().find(|view| ours(view)) {
                queue.add(
                    setpoint_machinery::View::meta(&**view).key.clone(),
                    delta.cause.clone(),
                );
            }
        })
}

/// Keeps every node registered and its Lease fresh, for ever; the process is ready once all are registered.
async fn heartbeats(
    host: &Host,
    settings: &Settings,
    machine: &Machine,
    nodes: Vec<Node>,
    gateway: &Gateway,
) {
    let check = host.health().check("nodes");
    let count = nodes.len();
    let missing = Arc::new(std::sync::atomic::AtomicUsize::new(count));
    let beats = nodes.into_iter().enumerate().map(|(index, node)| {
        let heartbeat = Heartbeat {
            node,
            machine: machine.clone(),
            gateway: gateway.clone(),
            every: settings.heartbeat,
            refresh: settings.status_refresh,
        };
        let (check, missing) = (check.clone(), Arc::clone(&missing));
        heartbeat.run(index as f64 / count as f64, move || {
            if missing.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) == 1 {
                check.pass();
            }
        })
    });
    join_all(beats).await;
}
