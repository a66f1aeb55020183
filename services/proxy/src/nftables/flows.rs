//! Flows without connections, such as those of UDP: they outlive their endpoint in the kernel's table of connections,
//! and are deleted there by the program `conntrack`.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use tracing::{debug, warn};

use crate::ledger::{Delta, Owner};
use crate::service::Protocol;
use crate::{Front, PortPlan, command};

/// The largest number of flows that are remembered while `nft` or `conntrack` fails.
const MAX: usize = 4096;

/// Flows to a front whose endpoint is gone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StaleFlow {
    /// The address that clients send to; `None` for any of the nodes'.
    pub address: Option<Ipv4Addr>,
    /// The port that they send to.
    pub port: u16,
    /// The endpoint.
    pub endpoint: SocketAddrV4,
}

/// Returns the flows that a delta leaves without an endpoint.
pub fn stale(delta: &Delta) -> BTreeSet<StaleFlow> {
    let mut stale = BTreeSet::new();
    for (before, after) in delta.ports.values() {
        let Some(before) = before
            .as_ref()
            .filter(|port| port.id.protocol == Protocol::Udp)
        else {
            continue;
        };
        let kept: BTreeSet<_> = after.iter().flat_map(|port| port.endpoints()).collect();
        let gone = before
            .endpoints()
            .filter(|endpoint| !kept.contains(endpoint));
        stale.extend(gone.flat_map(|endpoint| flows(before, endpoint)));
    }
    // Fronts that are another's, or nobody's: the flows to all endpoints of the former one.
    for ((front, protocol), (before, after)) in &delta.fronts {
        let Some((id, Ok(_))) = before else { continue };
        let same = |owner: &Owner| owner.0 == *id && owner.1.is_ok();
        if *protocol != Protocol::Udp || after.as_ref().is_some_and(same) {
            continue;
        }
        let former = delta.ports.get(id).and_then(|(before, _)| before.as_ref());
        let endpoints = former.into_iter().flat_map(|port| port.endpoints());
        stale.extend(endpoints.map(|endpoint| flow(*front, endpoint)));
    }
    stale
}

fn flows(port: &PortPlan, endpoint: SocketAddrV4) -> impl Iterator<Item = StaleFlow> {
    port.fronts
        .iter()
        .map(move |front| flow(front.at, endpoint))
}

fn flow(front: Front, endpoint: SocketAddrV4) -> StaleFlow {
    let (address, port) = match front {
        Front::Address(at) | Front::From(_, at) => (Some(*at.ip()), at.port()),
        Front::Node(port) | Front::NodeOf(_, port) => (None, port),
    };
    StaleFlow {
        address,
        port,
        endpoint,
    }
}

/// Deletes stale flows.
pub struct Flows {
    command: Vec<String>,
    timeout: Duration,
    waiting: BTreeSet<StaleFlow>,
    /// Whether it was said that the program is missing.
    told: bool,
}

impl Flows {
    pub fn new(command: Vec<String>, timeout: Duration) -> Self {
        Self {
            command,
            timeout,
            waiting: BTreeSet::new(),
            told: false,
        }
    }

    /// Remembers flows to delete, as soon as no new packet goes to their endpoint.
    pub fn remember(&mut self, stale: BTreeSet<StaleFlow>) {
        self.waiting.extend(stale);
        while self.waiting.len() > MAX {
            self.waiting.pop_last();
        }
    }

    /// Deletes what is remembered.
    pub async fn delete(&mut self) {
        while let Some(flow) = self.waiting.pop_first() {
            let args = args(&flow);
            let args: Vec<_> = args.iter().map(String::as_str).collect();
            let run = command::run(&self.command, &args, String::new(), self.timeout);
            match run.await {
                Ok(_) => debug!(?flow, "deleted the flows to a gone endpoint"),
                // It fails if it has found none.
                Err(command::Error::Failed { message, .. }) => debug!(?flow, message, "no flow"),
                Err(error) => {
                    if !std::mem::replace(&mut self.told, true) {
                        warn!(%error, "flows of UDP go on to endpoints that are gone until they time out");
                    }
                    self.waiting.clear();
                }
            }
        }
    }
}

fn args(flow: &StaleFlow) -> Vec<String> {
    let (port, endpoint) = (flow.port.to_string(), flow.endpoint);
    let (ip, endpoint_port) = (endpoint.ip().to_string(), endpoint.port().to_string());
    let mut args: Vec<_> = ["-D", "-f", "ipv4", "-p", "udp", "--orig-port-dst", &port]
        .map(str::to_owned)
        .into();
    args.extend([
        "--reply-src".to_owned(),
        ip,
        "--reply-port-src".to_owned(),
        endpoint_port,
    ]);
    if let Some(address) = flow.address {
        args.extend(["--orig-dst".to_owned(), address.to_string()]);
    }
    args
}
