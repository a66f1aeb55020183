//! Makes Services carry traffic: connections to their addresses reach endpoints.
//!
//! ```text
//! watch: Services, EndpointSlices, Nodes ─▶ caches ─▶ queue of Services ─▶ plan ─▶ ledger: delta ─▶ back end
//! ```
//! There is one for each network through which traffic of Pods passes, such as that of a machine. `plan` and the ledger
//! are pure; work is proportional to what changes. What is programmed stays when the process ends: a proxy that starts
//! replaces it once its caches are complete, and `proxy --cleanup TABLE` or `--cleanup-routes RANGE` removes it.
//!
//! Of a machine with several nodes, clients and connections belong to the node of their address ([`Site`]); health
//! checks of load balancers ([`health`]) answer for each node. What is programmed for a Service, and when, is in the
//! decision log.
//!
//! The back end of nftables ([`nftables`]) has one table. Of a connection from outside of the nodes and of an endpoint
//! to itself, the source address becomes that of the machine. Endpoints on the loopback are reached from this machine
//! alone. In a network namespace of its own it can answer for all addresses of Services ([`nftables::Answered`]), so
//! that they are part of a network whose other machines need no route.
//!
//! On machines of one network, each of which is a node, it keeps routes to the Pods of the others ([`routes`]).
//!
//! The back end of user space ([`userspace`]) forwards connections through sockets of the process, for machines without
//! root or nftables.

mod account;
mod backend;
mod cleanup;
mod command;
mod endpoints;
pub mod health;
mod ledger;
mod metrics;
pub mod network_policy;
pub mod nftables;
mod node;
mod plan;
mod port;
mod report;
pub mod routes;
mod service;
mod settings;
mod site;
mod slice;
mod start;
mod sync;
pub mod userspace;

use std::env;
use std::process::ExitCode;

pub use backend::{Backend, Kind};
pub use ledger::{Change, Changes, Claimed, Delta, Ledger, Owner};
pub use node::{NodeView, Place};
pub use plan::{World, plan};
pub use port::{Chain, Front, FrontPlan, PortId, PortPlan, Refusal, ServicePlan, SitePools, Way};
pub use report::{CheckReport, Report};
pub use service::{Port, Protocol, ServiceView, TrafficPolicy};
pub use settings::{BackendName, Settings};
pub use site::Site;
pub use slice::{Endpoint, EndpointPort, SliceView};

/// Runs the proxy's process, or removes what one has left.
pub fn main() -> ExitCode {
    let is_userspace = |settings: Settings| settings.backend == BackendName::Userspace;
    match cleanup::requested(env::args_os().skip(1)) {
        Some(request) => cleanup::cleanup(request),
        None if userspace::supervisor::begin_child() => run(),
        None if setpoint_host::settings::peek("proxy").is_some_and(is_userspace) => {
            userspace::supervisor::supervise()
        }
        None => run(),
    }
}

#[tokio::main(worker_threads = 2)]
async fn run() -> ExitCode {
    setpoint_host::run("proxy", start::start).await
}
