//! Who belongs to a cluster on this machine.

use crate::folder::Folder;
use crate::shape::{Profile, Shape, address};

/// Services of which one replica leads and the others stand by.
pub const ELECTED: [&str; 3] = [
    "deployment-controller",
    "replicaset-controller",
    "scheduler",
];
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
    /// What it is told, beside where to listen.
    pub args: Vec<String>,
    /// The port it must have; the others take any.
    pub port: Option<u16>,
}

impl Member {
    fn new(service: &'static str, index: usize) -> Self {
        Self {
            service,
            name: format!("{service}-{index}"),
            args: Vec::new(),
            port: None,
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

/// The service of `<service>-<n>`.
pub fn service(name: &str) -> &str {
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
        "gateway" => 1,
        _ => 2,
    }
}

/// Everyone, in the order of their start: each stage needs the one before it.
pub fn stages(folder: &Folder, shape: &Shape) -> [Vec<Member>; 3] {
    let addresses = shape.addresses();
    let rest = elected(shape).chain(agents(folder));
    let rest = rest.map(|member| member.told("--gateway-address", &addresses));
    [
        vec![etcd(folder, shape)],
        gateways(shape).collect(),
        rest.collect(),
    ]
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

    fn roster(profile: Profile) -> [Vec<Member>; 3] {
        let folder = Folder::find(Path::new("/nowhere"), None);
        let shape = Shape {
            gateways: vec![7443, 7444],
            replicas: 3,
            profile,
            etcd: 7379,
            etcd_peer: 7380,
        };
        stages(&folder, &shape)
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
        for (index, members) in roster(Profile::Standard).iter().enumerate() {
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
