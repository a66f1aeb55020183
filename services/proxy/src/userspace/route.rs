//! The endpoints for a client of a front. Pure.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use setpoint_model::Cidr;

use super::balancer::Balancer;
use crate::service::TrafficPolicy;
use crate::{Chain, PortId, PortPlan, Protocol, Refusal, Way};

/// The way of connections to a front.
#[derive(Clone, Debug)]
pub struct Route {
    /// Where clients of these ranges go, the first that matches.
    pub clients: Vec<(Vec<Cidr>, Target)>,
    /// Where others go; `None` if nowhere.
    pub others: Option<Target>,
}

/// Where connections go.
#[derive(Clone, Debug)]
pub struct Target {
    /// The plan for the port that has the front.
    pub plan: Arc<PortPlan>,
    /// The way, or the refusal.
    pub action: Result<Way, Refusal>,
    /// The ranges of the Pods of the node that the way is that of.
    pub pods: BTreeSet<Cidr>,
    /// The state of the port between its connections.
    pub balancer: Arc<Balancer>,
}

impl Route {
    /// Returns where a client goes.
    pub fn target(&self, client: Ipv4Addr) -> Option<&Target> {
        let mut clients = self.clients.iter();
        let own = clients.find(|(ranges, _)| ranges.iter().any(|range| range.contains(client)));
        own.map(|(_, target)| target).or(self.others.as_ref())
    }

    fn targets(&self) -> impl Iterator<Item = &Target> {
        let own = self.clients.iter().map(|(_, target)| target);
        own.chain(&self.others)
    }

    /// Returns the port that is at the front.
    pub fn port(&self) -> Option<&PortId> {
        self.targets().next().map(|target| &target.plan.id)
    }

    /// Returns whether there is something to listen for: connections that go somewhere, or datagrams that are to have
    /// no answer.
    pub fn listens(&self, protocol: Protocol) -> bool {
        let is_silent = |action| protocol == Protocol::Udp && action == Err(Refusal::Drop);
        let mut actions = self.targets().map(|target| target.action);
        actions.any(|action| action.is_ok() || is_silent(action))
    }
}

impl Target {
    /// Returns the endpoints for a client. `is_local` says whether an address is one of this machine.
    ///
    /// # Errors
    /// If the client is refused.
    pub fn pool(
        &self,
        client: Ipv4Addr,
        is_local: impl FnOnce(Ipv4Addr) -> bool,
    ) -> Result<&[SocketAddrV4], Refusal> {
        let way = self.action?;
        let site = way.site.and_then(|site| self.plan.sites.get(&site));
        let cluster = site.and_then(|site| site.cluster.as_ref());
        let cluster = cluster.unwrap_or(&self.plan.cluster);
        let local = match way.site {
            Some(_) => site.map_or_else(Default::default, |site| &*site.local),
            None => &*self.plan.local,
        };
        // As if they had gone out to a load balancer and come back, these reach all endpoints.
        let is_inside = || self.pods.iter().any(|range| range.contains(client)) || is_local(client);
        let pool = match way.chain {
            Chain::Cluster => &**cluster,
            Chain::Local => local,
            Chain::Balancer if !self.is_allowed(client) => return Err(Refusal::Drop),
            Chain::External | Chain::Balancer => match self.plan.external {
                Some(TrafficPolicy::Local) if !is_inside() => local,
                _ => cluster,
            },
        };
        match pool.is_empty() {
            true => Err(Refusal::Drop),
            false => Ok(pool),
        }
    }

    fn is_allowed(&self, client: Ipv4Addr) -> bool {
        let ranges = &self.plan.source_ranges;
        ranges.is_empty() || ranges.iter().any(|range| range.contains(client))
    }
}

#[cfg(test)]
mod tests {
    use setpoint_model::Key;

    use super::*;
    use crate::SitePools;

    const ENDPOINTS: [&str; 2] = ["127.1.0.1:80", "127.1.0.2:80"];

    fn target(action: Result<Way, Refusal>, external: TrafficPolicy, local: usize) -> Target {
        let endpoints = |count| ENDPOINTS.iter().take(count).map(|one| one.parse().unwrap());
        let id = PortId {
            service: Key::new("default", "web"),
            name: "http".into(),
            protocol: Protocol::Tcp,
        };
        let plan = PortPlan {
            id,
            affinity: None,
            external: Some(external),
            source_ranges: vec!["192.0.2.0/24".parse().unwrap()],
            cluster: endpoints(2).collect(),
            local: endpoints(local).collect(),
            sites: [(1, SitePools::default())].into(),
            fronts: Vec::new(),
        };
        let (plan, balancer) = (Arc::new(plan), Arc::new(Balancer::new(1)));
        Target {
            plan,
            action,
            pods: BTreeSet::new(),
            balancer,
        }
    }

    #[test]
    fn a_pool_is_that_of_the_chain_and_the_policy() {
        use TrafficPolicy::{Cluster, Local};
        let (inside, outside) = (Ipv4Addr::new(192, 0, 2, 7), Ipv4Addr::new(198, 51, 100, 7));
        let size = |target: Target, client, here| {
            let pool = target.pool(client, |_| here);
            pool.map(<[_]>::len)
        };
        let drop = Err(Refusal::Drop);
        for (chain, external, local, client, here, expected) in [
            (Chain::Cluster, Local, 0, inside, false, Ok(2)),
            (Chain::Local, Cluster, 1, inside, false, Ok(1)),
            (Chain::External, Cluster, 1, inside, false, Ok(2)),
            (Chain::External, Local, 1, inside, false, Ok(1)),
            (Chain::External, Local, 1, inside, true, Ok(2)),
            (Chain::External, Local, 0, inside, false, drop),
            (Chain::Balancer, Cluster, 0, inside, false, Ok(2)),
            (Chain::Balancer, Cluster, 0, outside, true, drop),
        ] {
            let target = target(Ok(Way::whole(chain)), external, local);
            assert_eq!(size(target, client, here), expected, "{chain:?} {client}");
        }
        let rejected = target(Err(Refusal::Reject), Cluster, 1);
        assert_eq!(size(rejected, inside, true), Err(Refusal::Reject));
    }

    #[test]
    fn clients_of_a_node_go_their_own_way() {
        let policy = TrafficPolicy::Local;
        let range: Cidr = "10.1.1.0/24".parse().unwrap();
        let of_site = Way {
            chain: Chain::External,
            site: Some(1),
        };
        let own = Target {
            pods: [range].into(),
            ..target(Ok(of_site), policy, 2)
        };
        let others = Some(target(Err(Refusal::Drop), policy, 0));
        let clients = vec![(vec![range], own.clone())];
        let route = Route { clients, others };
        let (pod, other) = (Ipv4Addr::new(10, 1, 1, 7), Ipv4Addr::new(10, 1, 2, 7));
        assert_eq!(route.target(pod).unwrap().action, Ok(of_site));
        assert_eq!(route.target(other).unwrap().action, Err(Refusal::Drop));
        assert_eq!(own.pool(pod, |_| false).unwrap().len(), 2);
        assert_eq!(
            own.pool(other, |_| false),
            Err(Refusal::Drop),
            "the node has no endpoint"
        );
        assert!(route.listens(Protocol::Tcp));
        let silent = Route {
            clients: Vec::new(),
            ..route
        };
        assert!(!silent.listens(Protocol::Tcp) && silent.listens(Protocol::Udp));
    }
}
