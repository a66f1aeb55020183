//! Publishes node ports and load balancers at an address of the engine's machine, by a container for each port.
//!
//! The first agent of the engine that runs does this for the Services of all nodes, and another one soon after it has
//! ended. An agent that has lost the gateways goes on with the Services that it knew.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::events::reference;
use setpoint_controller::{Informer, Reader, Recorder, View};
use setpoint_model::Meta;
use setpoint_proto::core::Service;
use setpoint_runtime::Error;
use setpoint_runtime::docker::{Docker, Forward, Forwarder, Published};
use tokio::sync::Notify;
use tokio::time::sleep;
use tracing::{info, warn};

/// The interval of looking for containers that somebody else has removed, of attempts at ports that are in use, and of
/// looking whether another agent has ended.
const PERIOD: Duration = Duration::from_secs(30);
/// The engine's words about a port that is in use, by others and by its own containers.
const IN_USE: [&str; 2] = ["address already in use", "port is already allocated"];
/// The reason of Events about ports that are not published.
const FAILED: &str = "FailedToPublishPort";

/// The ports of a Service that may be published.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedService {
    meta: Meta,
    /// Whether they are of UDP, and their numbers.
    node_ports: BTreeSet<(bool, u16)>,
    /// Those of its load balancer, and its addresses.
    balanced: BTreeSet<(bool, u16)>,
    balancers: Vec<IpAddr>,
}

impl View for PublishedService {
    type Object = Service;

    fn of(service: Service) -> Self {
        let ports = &service.spec.ports;
        let of = |number: fn(&setpoint_proto::core::ServicePort) -> i32| {
            let ports = ports.iter().filter(|port| port.protocol != "SCTP");
            let port = |port| Some((port_is_udp(port), u16::try_from(number(port)).ok()?));
            ports
                .filter_map(port)
                .filter(|(_, port)| *port > 0)
                .collect()
        };
        let ingress = service.status.load_balancer.ingress.iter();
        Self {
            meta: Meta::identity(&service.metadata),
            node_ports: of(|port| port.node_port),
            balanced: of(|port| port.port),
            balancers: match service.spec.r#type.as_str() {
                "LoadBalancer" => ingress.filter_map(|one| one.ip.parse().ok()).collect(),
                _ => Vec::new(),
            },
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

fn port_is_udp(port: &setpoint_proto::core::ServicePort) -> bool {
    port.protocol == "UDP"
}

impl PublishedService {
    /// Returns the ports that are forwarded for it.
    fn forwards(&self, at: Published) -> impl Iterator<Item = Forward> {
        let is_balanced = self.balancers.contains(&IpAddr::V4(at.to));
        let balanced = self.balanced.iter().filter(move |_| is_balanced);
        let ports = self.node_ports.iter().chain(balanced);
        ports.map(move |(udp, port)| Forward {
            udp: *udp,
            port: *port,
            at: at.at,
            to: at.to,
        })
    }
}

/// Returns the containers to remove and the ports to forward. Pure.
fn plan(wanted: &BTreeSet<Forward>, present: &[Forwarder]) -> (Vec<Forwarder>, Vec<Forward>) {
    let texts: BTreeSet<_> = wanted.iter().map(ToString::to_string).collect();
    let gone = present.iter().filter(|one| !texts.contains(&one.forward));
    let runs: BTreeSet<_> = present
        .iter()
        .filter(|one| one.runs)
        .map(|one| one.forward.as_str())
        .collect();
    let new = wanted
        .iter()
        .filter(|forward| !runs.contains(forward.to_string().as_str()));
    (gone.cloned().collect(), new.copied().collect())
}

/// Keeps ports published.
pub struct Publisher {
    /// The engine.
    pub docker: Docker,
    /// The addresses.
    pub published: Published,
    /// The cache of Services.
    pub services: Reader<PublishedService>,
    /// Signals changes of Services.
    pub changed: Arc<Notify>,
    /// Records ports that are not published.
    pub events: Recorder,
}

impl Publisher {
    /// Publishes ports, and withdraws them, until dropped.
    pub async fn run(&self) {
        self.services.synced().await;
        loop {
            if let Err(error) = self.round().await {
                warn!(%error, "ports of Services are not published, and are tried again");
            }
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep(PERIOD) => {}
            }
        }
    }

    async fn round(&self) -> Result<(), Error> {
        if !self.docker.forwards_ports().await? {
            return Ok(());
        }
        let services = self.services.list();
        let wanted = services
            .iter()
            .flat_map(|service| service.forwards(self.published));
        let (gone, new) = plan(&wanted.collect(), &self.docker.forwarders().await?);
        for forwarder in gone {
            self.docker.stop_forwarder(&forwarder.id).await?;
            info!(port = forwarder.forward, "withdrew a port");
        }
        for forward in new {
            match self.docker.start_forwarder(&forward).await {
                Ok(()) => info!(port = %forward, "published a port"),
                Err(error) => self.report(&services, &forward, &error),
            }
        }
        Ok(())
    }

    fn report(&self, services: &[Arc<PublishedService>], forward: &Forward, error: &Error) {
        warn!(port = %forward, %error, "a port is not published");
        let has_it = |service: &&Arc<PublishedService>| {
            service.forwards(self.published).any(|one| one == *forward)
        };
        for service in services.iter().filter(has_it) {
            let about = reference::<Service>(&service.meta);
            self.events.warning(&about, FAILED, message(forward, error));
        }
    }
}

/// Returns the text of an Event. The engine's own text about a port that is in use is another one each time.
fn message(forward: &Forward, error: &Error) -> String {
    let text = error.to_string();
    match IN_USE.iter().any(|words| text.contains(words)) {
        true => format!("port {forward} is not published: the port is in use"),
        false => text,
    }
}

/// Returns the informer of Services that signals their changes.
pub fn informer(
    services: Informer<PublishedService>,
    changed: &Arc<Notify>,
) -> Informer<PublishedService> {
    let changed = Arc::clone(changed);
    services.on_event(move |delta| {
        if delta.old != delta.new {
            changed.notify_one();
        }
    })
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{LoadBalancerIngress, ServicePort};

    use super::*;

    const AT: Published = Published {
        at: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        to: std::net::Ipv4Addr::new(10, 112, 64, 2),
    };

    fn service(kind: &str, address: &str) -> PublishedService {
        let mut service = Service::default();
        service.spec.r#type = kind.to_owned();
        let port = |protocol: &str, port, node_port| ServicePort {
            protocol: protocol.to_owned(),
            port,
            node_port,
            ..ServicePort::default()
        };
        service.spec.ports = vec![
            port("TCP", 80, 30080),
            port("UDP", 53, 0),
            port("SCTP", 9, 30009),
        ];
        service.status.load_balancer.ingress = vec![LoadBalancerIngress {
            ip: address.to_owned(),
            ..LoadBalancerIngress::default()
        }];
        PublishedService::of(service)
    }

    fn texts(service: &PublishedService) -> Vec<String> {
        let mut forwards: Vec<_> = service.forwards(AT).collect();
        forwards.sort();
        forwards.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn node_ports_are_published_and_ports_of_load_balancers_at_the_address_of_the_proxy() {
        let node_port = "30080/tcp at 127.0.0.1 to 10.112.64.2".to_owned();
        let balanced =
            ["80/tcp", "53/udp"].map(|port| format!("{port} at 127.0.0.1 to 10.112.64.2"));
        let [tcp, udp] = balanced;
        for (kind, address, expected) in [
            ("NodePort", "10.112.64.2", vec![node_port.clone()]),
            ("LoadBalancer", "", vec![node_port.clone()]),
            ("LoadBalancer", "192.0.2.1", vec![node_port.clone()]),
            ("LoadBalancer", "10.112.64.2", vec![tcp, node_port, udp]),
        ] {
            assert_eq!(texts(&service(kind, address)), expected, "{kind} {address}");
        }
    }

    #[test]
    fn what_runs_stays_and_what_is_not_wanted_goes() {
        let wanted: BTreeSet<_> = service("LoadBalancer", "10.112.64.2")
            .forwards(AT)
            .collect();
        let forwarder = |forward: &str, runs| Forwarder {
            id: forward.to_owned(),
            forward: forward.to_owned(),
            runs,
        };
        let all: Vec<_> = wanted.iter().map(ToString::to_string).collect();
        let running: Vec<_> = all.iter().map(|one| forwarder(one, true)).collect();
        assert_eq!(plan(&wanted, &running), (vec![], vec![]));
        let stopped: Vec<_> = all.iter().map(|one| forwarder(one, false)).collect();
        assert_eq!(
            plan(&wanted, &stopped),
            (vec![], wanted.iter().copied().collect())
        );
        let other = forwarder("30080/tcp at 0.0.0.0 to 10.112.64.2", true);
        let (gone, new) = plan(&wanted, std::slice::from_ref(&other));
        assert_eq!((gone, new.len()), (vec![other], 3));
    }
}
