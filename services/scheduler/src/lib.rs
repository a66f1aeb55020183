//! Finds a node for every Pod: filter, score, bind.
//!
//! One leader decides on all waiting Pods in one pure plan, each Pod seeing what those before it took. The next round
//! starts only when the cache shows what the last one bound, so nothing has to be assumed.
//! A Pod that fits nowhere waits in the backlog until a node or a Pod changes in a way that matters.

mod act;
mod anti_affinity;
mod backlog;
mod doubts;
mod filter;
mod metrics;
mod node;
mod plan;
mod pod;
mod ports;
mod rounds;
mod score;
mod settings;
mod shift;
mod status;
mod unsupported;
mod world;

use setpoint_controller::{Replica, election};
use setpoint_host::Host;
use setpoint_proto::Resource as _;
use setpoint_proto::core::Pod;
use tokio::task::JoinSet;

pub use anti_affinity::{Existing, Term};
pub use node::NodeView;
pub use plan::{Action, plan};
pub use pod::{NodeWants, PodView, Wants};
pub use ports::HostPort;
pub use settings::Settings;
pub use world::{Candidate, World};

use shift::Shift;

/// Runs the scheduler until shutdown: caches from the start, decisions while it leads.
///
/// # Errors
/// When the gateway's address or the election's settings cannot work.
pub async fn start(host: Host, settings: Settings) -> anyhow::Result<()> {
    let name = &settings.scheduler_name;
    let replica = Replica::join(host, &settings.gateway, name, Pod::RESOURCE)?;
    let (pods, nodes) = (
        replica.informer::<PodView>(),
        replica.informer::<NodeView>(),
    );
    let shift = Shift::new(
        pods.reader(),
        nodes.reader(),
        replica.events.clone(),
        replica.decision_log.clone(),
        settings.clone(),
    );
    let (on_pod, on_node) = (shift.clone(), shift.clone());
    let Replica {
        host,
        client: gateway,
        ..
    } = &replica;
    let (stop, informers) = (host.shutdown(), host.health().check("informers"));

    let mut watches = JoinSet::new();
    watches.spawn(
        pods.on_event(move |change| on_pod.pod(change))
            .run(stop.clone()),
    );
    watches.spawn(
        nodes
            .on_event(move |change| on_node.node(change))
            .run(stop.clone()),
    );
    if stop.run_until_cancelled(shift.synced()).await.is_none() {
        return Ok(());
    }
    informers.pass();
    let work = |term| shift.lead(gateway.clone(), term, stop.clone());
    election::run(
        gateway.clone(),
        settings.election,
        host.service(),
        host.instance(),
        stop.clone(),
        work,
    )
    .await?;
    replica.leave().await;
    Ok(())
}
