//! Who belongs to a cluster on this machine.

use crate::cli::{Profile, Up};
use crate::folder::Folder;

/// Replicas of each service that elects a leader.
const REPLICAS: usize = 2;
/// Services of which one replica leads and the others stand by.
const ELECTED: [&str; 3] = [
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

    /// Where it says whether it is ready.
    pub fn health(&self) -> &'static str {
        if self.service == "etcd" {
            "/health"
        } else {
            "/readyz"
        }
    }
}

/// Everyone, in the order of their start: each stage needs the one before it.
pub fn stages(folder: &Folder, options: &Up) -> [Vec<Member>; 3] {
    let address = format!("http://127.0.0.1:{}", options.port);
    let rest = elected(options.profile).chain(agents(folder));
    let rest = rest.map(|member| member.told("--gateway-address", &address));
    [
        vec![etcd(folder, options)],
        vec![gateway(options)],
        rest.collect(),
    ]
}

fn etcd(folder: &Folder, options: &Up) -> Member {
    let client = format!("http://127.0.0.1:{}", options.etcd_port);
    let peer = format!("http://127.0.0.1:{}", options.etcd_peer_port);
    Member::new("etcd", 0)
        .on(options.etcd_port)
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

fn gateway(options: &Up) -> Member {
    let etcd = format!("http://127.0.0.1:{}", options.etcd_port);
    Member::new("gateway", 0)
        .on(options.port)
        .told("--etcd-endpoints", etcd)
}

fn elected(profile: Profile) -> impl Iterator<Item = Member> {
    let replicas = |service| (0..REPLICAS).map(move |index| Member::new(service, index));
    ELECTED
        .into_iter()
        .flat_map(replicas)
        .map(move |member| match profile {
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

    fn names(profile: Profile) -> [Vec<Member>; 3] {
        let folder = Folder::find(Path::new("/nowhere"), None);
        let options = Up {
            fresh: false,
            port: 7443,
            etcd_port: 7379,
            etcd_peer_port: 7380,
            profile,
        };
        stages(&folder, &options)
    }

    #[test]
    fn a_cluster_is_etcd_then_a_gateway_then_everyone_else() {
        let stages = names(Profile::Standard);
        let names = stages.each_ref().map(|stage| {
            stage
                .iter()
                .map(|member| member.name.as_str())
                .collect::<Vec<_>>()
        });
        assert_eq!(names[0], ["etcd-0"]);
        assert_eq!(names[1], ["gateway-0"]);
        assert_eq!(names[2].len(), 3 * 2 + 3);
        assert_eq!(
            names[2][4..],
            [
                "scheduler-0",
                "scheduler-1",
                "node-agent-0",
                "node-agent-1",
                "node-agent-2"
            ]
        );
    }

    #[test]
    fn whoever_needs_the_gateway_is_told_where_it_is() {
        let [_, gateway, rest] = names(Profile::Standard);
        assert_eq!(
            gateway[0].args,
            ["--etcd-endpoints", "http://127.0.0.1:7379"]
        );
        for member in rest {
            let told = member.args.iter().any(|arg| arg == "http://127.0.0.1:7443");
            assert!(told, "{} is not told", member.name);
        }
    }

    #[test]
    fn the_fast_profile_is_for_those_who_elect() {
        let [_, _, rest] = names(Profile::Fast);
        for member in rest {
            let told = member
                .args
                .iter()
                .any(|arg| arg == "--election-lease-duration");
            assert_eq!(told, ELECTED.contains(&member.service), "{}", member.name);
        }
    }
}
