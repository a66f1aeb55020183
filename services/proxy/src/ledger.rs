//! The ledger of what is programmed, and the deltas that changes make in it. Pure.
//!
//! Several ports may claim one front, as Services with the same external address do: the first of them in the order of
//! their ids has it, and the next one after that. Work is proportional to the Services that change.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::sync::Arc;

use setpoint_model::Key;

use crate::service::Protocol;
use crate::{Front, PortId, PortPlan, Refusal, ServicePlan, Way};

/// The Services to program: `None` for one that is gone.
pub type Changes = BTreeMap<Key, Option<Arc<ServicePlan>>>;
/// A front and its protocol.
pub type Claimed = (Front, Protocol);
/// The port that has a front, and what happens there.
pub type Owner = (PortId, Result<Way, Refusal>);

/// All Services as they are programmed.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    services: HashMap<Key, Arc<ServicePlan>>,
    claims: HashMap<Claimed, BTreeMap<PortId, Result<Way, Refusal>>>,
    /// The number of ports of each address of endpoints.
    addresses: HashMap<Ipv4Addr, usize>,
}

/// One change, from the first value to the second.
pub type Change<T> = (Option<T>, Option<T>);

/// The difference of two states of the ledger; nothing in it is the same before and after.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delta {
    /// The ports.
    pub ports: BTreeMap<PortId, Change<Arc<PortPlan>>>,
    /// The fronts.
    pub fronts: BTreeMap<Claimed, Change<Owner>>,
    /// The addresses of endpoints that appear.
    pub appeared: BTreeSet<Ipv4Addr>,
    /// The addresses of endpoints that disappear.
    pub disappeared: BTreeSet<Ipv4Addr>,
}

impl Delta {
    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty() && self.fronts.is_empty()
    }
}

impl Ledger {
    /// Returns the number of Services.
    pub fn len(&self) -> usize {
        self.services.len()
    }

    /// Returns whether there is no Service.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// Applies changes, and returns what differs then.
    pub fn apply(&mut self, changes: Changes) -> Delta {
        let mut delta = self.touched(&changes);
        for (key, new) in changes {
            self.forget(&key);
            if let Some(new) = new.filter(|new| !new.ports.is_empty()) {
                self.enter(key, new);
            }
        }
        for (front, (_, after)) in &mut delta.fronts {
            *after = self.owner(*front);
        }
        for (id, (_, after)) in &mut delta.ports {
            *after = self.port(id);
        }
        delta.fronts.retain(|_, (before, after)| before != after);
        delta.ports.retain(|_, (before, after)| before != after);
        let has = |address: &Ipv4Addr| self.addresses.contains_key(address);
        delta.disappeared.retain(|address| !has(address));
        delta.appeared.retain(has);
        delta
    }

    /// Returns everything as a delta from nothing.
    pub fn whole(&self) -> Delta {
        let all = self.services.iter();
        let all = all.map(|(key, plan)| (key.clone(), Some(Arc::clone(plan))));
        Self::default().apply(all.collect())
    }

    /// Returns some Services as a delta from nothing. Those that do not exist are left out.
    pub fn part(&self, services: &[Key]) -> Delta {
        let plan = |key: &Key| Some((key.clone(), Some(Arc::clone(self.services.get(key)?))));
        Self::default().apply(services.iter().filter_map(plan).collect())
    }

    /// Returns the state before the changes of everything that they may touch.
    fn touched(&self, changes: &Changes) -> Delta {
        let mut delta = Delta::default();
        for (key, new) in changes {
            let plans = self.services.get(key).into_iter().chain(new);
            for port in plans.flat_map(|plan| &plan.ports) {
                let before = self.port(&port.id);
                delta.ports.insert(port.id.clone(), (before, None));
                for front in fronts(port) {
                    delta.fronts.insert(front, (self.owner(front), None));
                }
                for endpoint in port.endpoints() {
                    match self.addresses.contains_key(endpoint.ip()) {
                        true => delta.disappeared.insert(*endpoint.ip()),
                        false => delta.appeared.insert(*endpoint.ip()),
                    };
                }
            }
        }
        delta
    }

    fn owner(&self, front: Claimed) -> Option<Owner> {
        let (id, action) = self.claims.get(&front)?.first_key_value()?;
        Some((id.clone(), *action))
    }

    fn port(&self, id: &PortId) -> Option<Arc<PortPlan>> {
        let plan = self.services.get(&id.service)?;
        plan.ports.iter().find(|port| port.id == *id).cloned()
    }

    fn enter(&mut self, key: Key, plan: Arc<ServicePlan>) {
        for port in &plan.ports {
            for front in &port.fronts {
                let claims = self.claims.entry((front.at, port.id.protocol)).or_default();
                claims.insert(port.id.clone(), front.action);
            }
            for address in addresses(port) {
                let ports = self.addresses.entry(address).or_default();
                *ports = ports.saturating_add(1);
            }
        }
        self.services.insert(key, plan);
    }

    fn forget(&mut self, key: &Key) {
        let Some(plan) = self.services.remove(key) else {
            return;
        };
        for port in &plan.ports {
            for front in fronts(port) {
                if let Some(claims) = self.claims.get_mut(&front) {
                    claims.remove(&port.id);
                    if claims.is_empty() {
                        self.claims.remove(&front);
                    }
                }
            }
            for address in addresses(port) {
                if let Some(ports) = self.addresses.get_mut(&address) {
                    *ports = ports.saturating_sub(1);
                    if *ports == 0 {
                        self.addresses.remove(&address);
                    }
                }
            }
        }
    }
}

fn fronts(port: &PortPlan) -> impl Iterator<Item = Claimed> {
    let protocol = port.id.protocol;
    port.fronts.iter().map(move |front| (front.at, protocol))
}

fn addresses(port: &PortPlan) -> BTreeSet<Ipv4Addr> {
    port.endpoints().map(|endpoint| *endpoint.ip()).collect()
}
