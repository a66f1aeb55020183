//! Plan: computes the addresses of a Service. Pure.

use std::fmt;
use std::net::IpAddr;

use setpoint_controller::{Plan, Whole};
use setpoint_proto::core::{LoadBalancerIngress, PortStatus, Service};

use crate::{Claim, Port, World, contest};

/// The class of Services that are this controller's, beside those without a class.
pub const CLASS: &str = "setpoint.dev/node-addresses";
/// The finalizer of Services with a load balancer, as upstream.
pub const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// The type of Services with a load balancer.
const TYPE: &str = "LoadBalancer";

/// One idempotent write of a Service, or an Event about it.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Add the finalizer.
    Protect,
    /// Remove it.
    Release,
    /// Replace the addresses in the status.
    SetIngress(Ingress),
    /// Remove all addresses of a Service that has no load balancer any more.
    ClearIngress,
    /// Record an Event: another Service has a port.
    ReportTaken(String),
    /// Record an Event: no node accepts connections.
    ReportNoNode,
}

/// The addresses of a Service.
#[derive(Clone, Default, PartialEq)]
pub struct Ingress(pub Vec<LoadBalancerIngress>);

/// Writes the IP addresses only, since plans are printed for users.
impl fmt::Debug for Ingress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ips = self.0.iter().map(|one| &one.ip);
        f.debug_list().entries(ips).finish()
    }
}

/// The text of [`Action::ReportNoNode`], as upstream's.
pub(crate) const NO_NODE: &str = "There are no available nodes for LoadBalancer";

/// Returns whether the load balancer of a Service is this controller's.
pub fn is_ours(service: &Service) -> bool {
    let class = service.spec.load_balancer_class.as_deref();
    service.spec.r#type == TYPE && class.is_none_or(|class| class == CLASS)
}

pub(crate) fn is_protected(service: &Service) -> bool {
    let mut finalizers = service.metadata.finalizers.iter();
    finalizers.any(|finalizer| finalizer == FINALIZER)
}

/// Computes the writes.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    let service = &world.service;
    let (ours, protected) = (is_ours(&service.object), is_protected(&service.object));
    match ours && !service.meta.deleting {
        true if protected => ensure(world, &mut plan),
        // The next reconcile writes the status, to the version with the finalizer.
        true => plan.step(
            Action::Protect,
            "its deletion has to wait for its addresses",
        ),
        // Of another type, it has no class any more that says whose it was: upstream removes the finalizer, too.
        false if protected && (ours || service.object.spec.r#type != TYPE) => {
            clean_up(service, &mut plan);
        }
        false => {}
    }
    plan
}

fn clean_up(service: &Whole<Service>, plan: &mut Plan<Action>) {
    match service.object.status.load_balancer.ingress.is_empty() {
        true => plan.step(Action::Release, "it has no address any more"),
        false => plan.step(Action::ClearIngress, "it has no load balancer any more"),
    }
}

fn ensure(world: &World, plan: &mut Plan<Action>) {
    let service = &world.service;
    let key = &service.meta.key;
    let own = world.claims.iter().find(|claim| claim.service == *key);
    let Some(own) = own else { return };
    let wanted = match contest(&world.claims, key) {
        Some((holder, place)) => {
            let problem = taken(holder, place);
            if world.reported.as_ref() != Some(&problem) {
                plan.step(
                    Action::ReportTaken(problem),
                    "an older Service has a port of it",
                );
            }
            Vec::new()
        }
        None => ingress(own),
    };
    if own.addresses.is_empty() && world.reported.as_deref() != Some(NO_NODE) {
        plan.step(Action::ReportNoNode, "no node accepts its connections");
    }
    if wanted != service.object.status.load_balancer.ingress {
        plan.step(
            Action::SetIngress(Ingress(wanted)),
            "its addresses or ports have changed",
        );
    }
}

fn taken(holder: &Claim, (ip, (protocol, port)): (IpAddr, &Port)) -> String {
    let other = &holder.service;
    format!("port {port} of {protocol} at {ip} is that of the Service {other}")
}

fn ingress(claim: &Claim) -> Vec<LoadBalancerIngress> {
    let port = |(protocol, port): &Port| PortStatus {
        port: *port,
        protocol: protocol.clone(),
        error: None,
    };
    let ports: Vec<_> = claim.ports.iter().map(port).collect();
    let one = |ip: &IpAddr| LoadBalancerIngress {
        ip: ip.to_string(),
        ip_mode: Some("VIP".to_owned()),
        ports: ports.clone(),
        ..LoadBalancerIngress::default()
    };
    claim.addresses.iter().map(one).collect()
}
