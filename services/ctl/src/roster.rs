//! Who belongs to a cluster on this machine.

use std::net::Ipv4Addr;

use crate::folder::Folder;
use crate::shape::{LOOPBACK, Profile, Shape, address, addresses};

/// Services of which one replica leads and the others stand by.
pub const ELECTED: [&str; 3] = [
    "deployment-controller",
    "replicaset-controller",
    "scheduler",
];
/// What the name of each relay begins with; the rest is the name of its caller.
const RELAY: &str = "relay-";
/// Relays listen at addresses of loopback from 127.0.100.1 on; those of Pods begin with 127.1 and higher.
const RELAYS: usize = 100;
/// Nodes that run their containers as processes of this machine, each with an agent of its own.
pub const NODES: [&str; 2] = ["node-0", "node-1"];
/// Nodes that only pretend to, all in one agent.
const SIMULATED: usize = 10;
/// Half of what etcd advises as the most, and enough for a laptop's cluster to forget what is old before it matters.
const QUOTA: &str = "4294967296";
/// Old revisions that etcd keeps, for lists and watches that are continued.
const HISTORY: &str = "100000";

/// One process of the cluster.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its service, which is also its program.
    pub service: &'static str,
    /// `<service>-<n>`.
    pub name: String,
    /// `<n>`.
    index: usize,
    /// What it is told, beside where to listen.
    pub args: Vec<String>,
    /// The port it must have; the others take any.
    pub port: Option<u16>,
    /// The IP at which a relay stands for the gateways.
    pub at: Option<Ipv4Addr>,
}

impl Member {
    fn new(service: &'static str, index: usize) -> Self {
        Self {
            service,
            name: format!("{service}-{index}"),
            index,
            args: Vec::new(),
            port: None,
            at: None,
        }
    }

    fn told(mut self, flag: &str, value: impl ToString) -> Self {
        self.args.extend([flag.to_owned(), value.to_string()]);
        self
    }

    fn on(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }
}

/// The name of the relay between this caller and the gateways.
pub fn relay(caller: &str) -> String {
    format!("{RELAY}{caller}")
}

/// The service of `<service>-<n>`.
pub fn service(name: &str) -> &str {
    if name.starts_with(RELAY) {
        return "relay";
    }
    name.rsplit_once('-').map_or(name, |(service, _)| service)
}

/// Where `<service>-<n>` says whether it is ready.
pub fn health(name: &str) -> &'static str {
    match service(name) {
        "etcd" => "/health",
        _ => "/readyz",
    }
}

/// In which stage of the start `<service>-<n>` is.
pub fn stage(name: &str) -> usize {
    match service(name) {
        "etcd" => 0,
        "gateway" | "relay" => 1,
        _ => 2,
    }
}

/// Everyone, in the order of their start: each stage needs the one before it.
pub fn stages(folder: &Folder, shape: &Shape) -> [Vec<Member>; 3] {
    let callers: Vec<_> = elected(shape).chain(agents(folder)).collect();
    let relays = callers.iter().filter(|_| shape.relays);
    let relays = relays.map(|caller| relay_of(caller, shape));
    let middle = gateways(shape).chain(relays).collect();
    let told = callers.into_iter().map(|caller| {
        let gateways = addresses(&way_of(&caller, shape), &shape.gateways);
        caller.told("--gateway-address", gateways)
    });
    [vec![etcd(folder, shape)], middle, told.collect()]
}

/// The IP at which this caller finds the gateways: their own, or that of its relay, on the same ports.
fn way_of(caller: &Member, shape: &Shape) -> String {
    if !shape.relays {
        return LOOPBACK.to_owned();
    }
    let row = ELECTED
        .iter()
        .position(|service| *service == caller.service);
    let row = RELAYS + row.unwrap_or(ELECTED.len());
    format!("127.0.{row}.{}", caller.index + 1)
}

fn relay_of(caller: &Member, shape: &Shape) -> Member {
    let mut relay = Member::new("relay", caller.index);
    let way = way_of(caller, shape);
    relay.name = self::relay(&caller.name);
    relay.at = way.parse().ok();
    relay.args.push("relay".to_owned());
    for port in &shape.gateways {
        relay = relay.told("--to", format!("{LOOPBACK}:{port}"));
    }
    // Last, or one that is told of more gateways would seem to be told of these.
    relay.told("--at", way)
}

fn etcd(folder: &Folder, shape: &Shape) -> Member {
    let (client, peer) = (address(shape.etcd), address(shape.etcd_peer));
    Member::new("etcd", 0)
        .on(shape.etcd)
        .told("--name", "setpoint")
        .told("--data-dir", folder.etcd().display())
        .told("--listen-client-urls", &client)
        .told("--advertise-client-urls", &client)
        .told("--listen-peer-urls", &peer)
        .told("--initial-advertise-peer-urls", &peer)
        .told("--initial-cluster", format!("setpoint={peer}"))
        .told("--quota-backend-bytes", QUOTA)
        .told("--auto-compaction-mode", "revision")
        .told("--auto-compaction-retention", HISTORY)
        .told("--logger", "zap")
        .told("--log-level", "warn")
}

fn gateways(shape: &Shape) -> impl Iterator<Item = Member> {
    let etcd = address(shape.etcd);
    let ports = shape.gateways.iter().enumerate();
    ports.map(move |(index, port)| {
        Member::new("gateway", index)
            .on(*port)
            .told("--etcd-endpoints", &etcd)
    })
}

fn elected(shape: &Shape) -> impl Iterator<Item = Member> {
    let replicas = |service| (0..shape.replicas).map(move |index| Member::new(service, index));
    ELECTED
        .into_iter()
        .flat_map(replicas)
        .map(|member| match shape.profile {
            Profile::Standard => member,
            Profile::Fast => member
                .told("--election-lease-duration", "2s")
                .told("--election-renew-deadline", "1400ms")
                .told("--election-retry-period", "300ms"),
        })
}

fn agents(folder: &Folder) -> impl Iterator<Item = Member> {
    let real = NODES.into_iter().enumerate().map(|(index, node)| {
        Member::new("node-agent", index)
            .told("--runtime", "process")
            .told("--node-name", node)
            .told("--state-dir", folder.node(node).display())
    });
    let simulated = Member::new("node-agent", NODES.len())
        .told("--runtime", "simulated")
        .told("--node-name", "simulated")
        .told("--nodes", SIMULATED);
    real.chain([simulated])
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn shape(profile: Profile) -> Shape {
        Shape {
            gateways: vec![7443, 7444],
            replicas: 3,
            profile,
            relays: false,
            etcd: 7379,
            etcd_peer: 7380,
        }
    }

    fn roster(profile: Profile) -> [Vec<Member>; 3] {
        stages(&nowhere(), &shape(profile))
    }

    fn relayed() -> [Vec<Member>; 3] {
        let relays = Shape {
            relays: true,
            ..shape(Profile::Standard)
        };
        stages(&nowhere(), &relays)
    }

    fn nowhere() -> Folder {
        Folder::find(Path::new("/nowhere"), None)
    }

    #[test]
    fn a_cluster_is_etcd_then_a_gateway_then_everyone_else() {
        let stages = roster(Profile::Standard);
        let names = stages.each_ref().map(|stage| {
            stage
                .iter()
                .map(|member| member.name.as_str())
                .collect::<Vec<_>>()
        });
        assert_eq!(names[0], ["etcd-0"]);
        assert_eq!(names[1], ["gateway-0", "gateway-1"]);
        assert_eq!(names[2].len(), 3 * 3 + 3);
        assert_eq!(
            names[2][7..],
            [
                "scheduler-1",
                "scheduler-2",
                "node-agent-0",
                "node-agent-1",
                "node-agent-2"
            ]
        );
    }

    #[test]
    fn each_name_is_in_the_stage_that_it_starts_in() {
        for (index, members) in relayed().iter().enumerate() {
            for member in members {
                assert_eq!(service(&member.name), member.service);
                assert_eq!(stage(&member.name), index);
            }
        }
    }

    #[test]
    fn whoever_needs_the_gateway_is_told_where_it_is() {
        let [_, gateways, rest] = roster(Profile::Standard);
        for gateway in gateways {
            assert_eq!(gateway.args, ["--etcd-endpoints", "http://127.0.0.1:7379"]);
        }
        for member in rest {
            let told = member
                .args
                .iter()
                .any(|arg| arg == "http://127.0.0.1:7443,http://127.0.0.1:7444");
            assert!(told, "{} is not told", member.name);
        }
    }

    #[test]
    fn whoever_has_a_relay_is_told_of_no_other_way_to_the_gateways() {
        let [_, middle, rest] = relayed();
        let relays = middle.iter().filter(|member| member.service == "relay");
        let relays: Vec<_> = relays.collect();
        assert_eq!(relays.len(), rest.len());
        for (member, own) in rest.iter().zip(&relays) {
            assert_eq!(own.name, relay(&member.name));
            let ip = own.args.last().unwrap();
            let told = format!("http://{ip}:7443,http://{ip}:7444");
            assert_eq!(member.args.last(), Some(&told));
            let same = relays.iter().filter(|relay| relay.args.last() == Some(ip));
            assert_eq!(same.count(), 1, "{ip}");
        }
        let expected = "relay --to 127.0.0.1:7443 --to 127.0.0.1:7444 --at 127.0.102.2";
        let scheduler = relays.iter().find(|one| one.name == "relay-scheduler-1");
        assert_eq!(
            scheduler.map(|one| one.args.join(" ")).as_deref(),
            Some(expected)
        );
    }

    #[test]
    fn the_fast_profile_is_for_those_who_elect() {
        let [_, _, rest] = roster(Profile::Fast);
        for member in rest {
            let told = member
                .args
                .iter()
                .any(|arg| arg == "--election-lease-duration");
            assert_eq!(told, ELECTED.contains(&member.service), "{}", member.name);
        }
    }
}
