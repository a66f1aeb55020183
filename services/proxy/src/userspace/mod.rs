//! The back end of user space: sockets that accept connections, and forward them to endpoints.
//!
//! ```text
//! client ─▶ socket of a front ─▶ route: chain, policy, balancer ─▶ socket to an endpoint
//! ```
//! It needs neither root nor nftables. Without root, the addresses of Services, Pods and nodes are those of the
//! loopback, 127.0.0.0/8, all of which are this machine's.
//!
//! What differs from nftables:
//! * Endpoints see an address of the machine, not the client's: affinity, policies and source ranges are decided
//!   here, by the address that the client has here. Clients on this machine that do not choose an address are all
//!   127.0.0.1.
//! * A socket of user space cannot leave the first packet of a connection without an answer. Of TCP, `Refusal::Drop`
//!   is the same as `Refusal::Reject`: nothing listens, so that connecting fails, which is what also comes of a
//!   packet that is dropped, though earlier. A connection whose client is refused where others are not (source
//!   ranges, the external policy) is reset. Datagrams are dropped without an answer.
//! * Nothing stays when the process ends. When it is stopped, it listens nowhere any more, and open connections have
//!   the time of the setting `userspace.grace_period` to end.
//! * When it dies instead, its parent ([`supervisor`]) keeps the sockets that listen while the process is started
//!   again: connections wait meanwhile, and those that were open are lost.

mod balancer;
mod front;
mod listen;
mod metrics;
mod route;
mod settings;
mod sockets;
mod splice;
pub mod supervisor;
mod table;
mod tcp;
mod udp;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::mem;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use parking_lot::RwLock;
use setpoint_model::Cidr;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::warn;

pub use listen::Listen;
pub use settings::Limits;
pub use sockets::Sockets;

use crate::backend::{Backend, Kind};
use crate::ledger::{Changes, Claimed, Delta, Ledger, Owner};
use crate::report::Report;
use crate::{Front as At, Place, PortId, PortPlan, Protocol, Site};
use balancer::Balancer;
use front::Front;
use metrics::Metrics;
use route::{Route, Target};

/// The largest number of endpoints that are tried for one connection, as in upstream's former proxy of user space.
const ATTEMPTS: usize = 4;

/// The state that all fronts share.
struct Shared {
    sockets: Sockets,
    /// The fronts that are open.
    fronts: RwLock<HashSet<Listen>>,
    limits: Limits,
    /// One for each further connection of TCP.
    permits: Arc<Semaphore>,
    pipes: splice::Pipes,
    tcp: Metrics,
    udp: Metrics,
    report: Report,
}

impl Shared {
    /// Returns whether an endpoint is a front of this process: a connection to it would come back, again and again.
    fn is_front(&self, protocol: Protocol, at: SocketAddrV4) -> bool {
        self.fronts.read().contains(&Listen { protocol, at })
    }
}

/// The back end.
pub struct Userspace {
    shared: Arc<Shared>,
    ledger: Ledger,
    /// The fronts as the ledger has them.
    owners: BTreeMap<Claimed, Owner>,
    plans: HashMap<PortId, (Arc<PortPlan>, Arc<Balancer>)>,
    open: BTreeMap<Listen, Front>,
    /// The place of the last call; `None` before the first.
    place: Option<Arc<Place>>,
}

impl Userspace {
    /// Returns a back end that listens nowhere.
    pub fn new(sockets: Sockets, limits: Limits, report: Report) -> Self {
        let shared = Shared {
            sockets,
            fronts: RwLock::default(),
            permits: Arc::new(Semaphore::new(limits.connections)),
            limits,
            pipes: splice::Pipes::default(),
            tcp: Metrics::of(Protocol::Tcp),
            udp: Metrics::of(Protocol::Udp),
            report,
        };
        Self {
            shared: Arc::new(shared),
            ledger: Ledger::default(),
            owners: BTreeMap::new(),
            plans: HashMap::new(),
            open: BTreeMap::new(),
            place: None,
        }
    }

    /// Takes a delta over, and returns the fronts that it touches.
    fn take(&mut self, delta: Delta) -> BTreeSet<Claimed> {
        let mut touched: BTreeSet<_> = delta.fronts.keys().copied().collect();
        for (id, (before, after)) in delta.ports {
            for port in before.iter().chain(&after) {
                let fronts = port.fronts.iter().map(|front| (front.at, id.protocol));
                touched.extend(fronts);
            }
            let Some(after) = after else {
                self.plans.remove(&id);
                continue;
            };
            match self.plans.get_mut(&id) {
                Some((plan, _)) => *plan = after,
                None => {
                    let balancer = Arc::new(Balancer::new(self.shared.limits.affinity_clients));
                    self.plans.insert(id, (after, balancer));
                }
            }
        }
        for (front, (_, after)) in delta.fronts {
            match after {
                Some(owner) => self.owners.insert(front, owner),
                None => self.owners.remove(&front),
            };
        }
        touched
    }

    /// Returns the way of connections to a socket; `None` if nothing is to listen there. As with nftables, what is for
    /// clients of a node comes first, then what is for its addresses.
    fn route(&self, listen: Listen, place: &Place) -> Option<Route> {
        let target = |at| self.target(at, listen.protocol, place);
        let (ip, port) = (listen.at.ip(), listen.at.port());
        let from = |(number, site): (&u16, &Site)| {
            Some((
                site.clients().collect(),
                target(At::From(*number, listen.at))?,
            ))
        };
        let of_site = || {
            let mut sites = place.sites.iter();
            let (number, _) = sites.find(|(_, site)| site.fronts.contains(ip))?;
            target(At::NodeOf(*number, port))
        };
        let is_node = place.addresses.contains(&Cidr::host(*ip));
        let of_node = || target(At::Node(port)).filter(|_| is_node);
        let route = Route {
            clients: place.sites.iter().filter_map(from).collect(),
            others: of_site()
                .or_else(|| target(At::Address(listen.at)))
                .or_else(of_node),
        };
        route.listens(listen.protocol).then_some(route)
    }

    fn target(&self, at: At, protocol: Protocol, place: &Place) -> Option<Target> {
        let (id, action) = self.owners.get(&(at, protocol))?;
        let (plan, balancer) = self.plans.get(id)?;
        let site = action.ok().and_then(|way| place.sites.get(&way.site?));
        Some(Target {
            plan: Arc::clone(plan),
            action: *action,
            pods: site.map(|site| site.pods.clone()).unwrap_or_default(),
            balancer: Arc::clone(balancer),
        })
    }

    /// Opens, reroutes or closes the sockets of fronts, as they are now.
    async fn apply(&mut self, touched: &BTreeSet<Listen>, place: &Place) {
        let routes = touched
            .iter()
            .map(|listen| (*listen, self.route(*listen, place)));
        let routes: Vec<_> = routes.collect();
        for (listen, route) in &routes {
            if route.is_none()
                && let Some(front) = self.open.remove(listen)
            {
                front.close().await;
            }
        }
        for (listen, route) in routes {
            let Some(route) = route else { continue };
            match self.open.get(&listen) {
                Some(front) => front.reroute(route),
                None => {
                    let front = Front::open(listen, route, &self.shared);
                    self.open.insert(listen, front);
                }
            }
        }
    }
}

/// Returns the sockets of fronts in a place.
fn sockets<'a>(fronts: impl IntoIterator<Item = &'a Claimed>, place: &Place) -> BTreeSet<Listen> {
    let mut sockets = BTreeSet::new();
    for (front, protocol) in fronts {
        let listen = |at| Listen {
            protocol: *protocol,
            at,
        };
        match front {
            At::Address(at) | At::From(_, at) => drop(sockets.insert(listen(*at))),
            At::NodeOf(site, port) => {
                let site = place.sites.get(site).into_iter();
                let addresses = site.flat_map(|site| &site.fronts);
                sockets.extend(addresses.map(|ip| listen(SocketAddrV4::new(*ip, *port))));
            }
            At::Node(port) => {
                let addresses = place.addresses.iter().filter_map(address);
                sockets.extend(addresses.map(|ip| listen(SocketAddrV4::new(ip, *port))));
            }
        }
    }
    sockets
}

/// Returns the address of a range of one.
fn address(range: &Cidr) -> Option<Ipv4Addr> {
    (range.bits() == 32).then(|| range.first())
}

impl Backend for Userspace {
    type Error = Infallible;

    async fn sync(&mut self, place: &Arc<Place>, changes: Changes) -> Result<Kind, Infallible> {
        let delta = self.ledger.apply(changes);
        let is_same = self.place.as_ref() == Some(place);
        if is_same && delta.is_empty() {
            return Ok(Kind::Nothing);
        }
        let touched = self.take(delta);
        let mut touched = sockets(&touched, place);
        if !is_same {
            let before = self.place.replace(Arc::clone(place));
            for place in before.iter().chain([place]) {
                touched.extend(sockets(self.owners.keys(), place));
            }
        }
        self.apply(&touched, place).await;
        if is_same {
            return Ok(Kind::Partial);
        }
        if let Err(error) = self.shared.sockets.sweep() {
            warn!(%error, "the parent keeps sockets that are not used");
        }
        Ok(Kind::Full)
    }

    /// Returns `true`: sockets that could not be opened are tried again by themselves.
    async fn check(&mut self) -> bool {
        true
    }

    /// Closes all fronts, and with them flows of UDP, and waits until the open connections have ended, for the time of
    /// the setting. Those that are left end with the process.
    async fn end(&mut self) {
        for front in mem::take(&mut self.open).into_values() {
            front.close().await;
        }
        let (limits, permits) = (&self.shared.limits, &self.shared.permits);
        let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
        if timeout(limits.grace_period, permits.acquire_many(all))
            .await
            .is_err()
        {
            let open = limits.connections - permits.available_permits();
            warn!(open, "connections have not ended in time, and are cut");
        }
    }
}
