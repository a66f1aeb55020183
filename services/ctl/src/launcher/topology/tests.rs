//! Tests of the processes of a cluster.

use std::net::Ipv4Addr;
use std::path::Path;

use super::*;
use crate::launcher::cluster_spec::Profile;
use crate::launcher::joined::Runtime;
use crate::launcher::{Component, ControlPlane, Joined, Joining};

fn spec(profile: Profile) -> ClusterSpec {
    ClusterSpec {
        gateways: vec![7443, 7444],
        replicas: 3,
        profile,
        etcd: 7379,
        ..ClusterSpec::default()
    }
}

fn topology(profile: Profile) -> [Vec<ProcessSpec>; 3] {
    stages(&nowhere(), &spec(profile))
}

fn relayed() -> [Vec<ProcessSpec>; 3] {
    let relays = ClusterSpec {
        relays: true,
        ..spec(Profile::Standard)
    };
    stages(&nowhere(), &relays)
}

fn nowhere() -> StateDir {
    StateDir::find(Path::new("/nowhere"), None)
}

#[test]
fn etcd_starts_before_the_gateways_and_these_before_their_clients() {
    let stages = topology(Profile::Standard);
    let names = stages.each_ref().map(|stage| {
        stage
            .iter()
            .map(|process| process.name.as_str())
            .collect::<Vec<_>>()
    });
    assert_eq!(names[0], ["certs-0", "etcd-0"]);
    assert_eq!(names[1], ["gateway-0", "gateway-1"]);
    assert_eq!(names[2].len(), 4 * 3 + 3);
    assert_eq!(
        names[2][8..],
        [
            "scheduler-2",
            "controller-manager-0",
            "controller-manager-1",
            "controller-manager-2",
            "node-agent-0",
            "node-agent-1",
            "node-agent-2"
        ]
    );
}

#[test]
fn the_stage_of_a_name_is_the_stage_that_contains_the_process() {
    for (index, processes) in relayed().iter().enumerate() {
        for process in processes {
            assert_eq!(service_of(&process.name), process.service);
            assert_eq!(stage(&process.name), index);
        }
    }
}

#[test]
fn an_agent_that_has_joined_has_its_own_name_and_no_certificate_of_ours() {
    let joined = Joined {
        node: "worker-1".to_owned(),
        server: "https://10.0.0.1:6443".to_owned(),
        runtime: Runtime::Simulated,
        cri_endpoint: None,
        network: None,
        token: "abcdef".to_owned(),
    };
    let agent = joined_agent(&nowhere(), &joined);
    assert_eq!(agent.name, "node-agent-of-worker-1");
    assert_eq!((service_of(&agent.name), stage(&agent.name)), (AGENT, 2));
    assert!(agent.identity.is_none());
    assert_eq!(
        agent.args.join(" "),
        "--runtime simulated --node-name worker-1 --state-dir /nowhere/.setpoint/node/worker-1 \
         --bootstrap-directory /nowhere/.setpoint/join/worker-1 \
         --bootstrap-token-file /nowhere/.setpoint/join/worker-1/token --gateway-address https://10.0.0.1:6443"
    );
    let on_cri = Joined {
        runtime: Runtime::Cri,
        cri_endpoint: Some("unix:///c.sock".to_owned()),
        ..joined
    };
    let agent = joined_agent(&nowhere(), &on_cri);
    assert_eq!(
        agent.args[..4],
        ["--runtime", "cri", "--cri-endpoint", "unix:///c.sock"]
    );
}

#[test]
fn every_client_gets_the_addresses_of_all_gateways() {
    let [_, gateways, rest] = topology(Profile::Standard);
    for gateway in gateways {
        let etcd = ["--etcd-endpoints", "https://127.0.0.1:7379"];
        assert!(gateway.args.windows(2).any(|pair| pair == etcd));
    }
    for process in rest {
        let has_addresses = process
            .args
            .iter()
            .any(|arg| arg == "https://127.0.0.1:7443,https://127.0.0.1:7444");
        assert!(has_addresses, "{}", process.name);
    }
}

/// Checks DG5: with a port, whoever reaches it can write to the store.
#[test]
fn the_peers_of_etcd_have_no_port() {
    let [first, _, _] = topology(Profile::Standard);
    let etcd = first.iter().find(|process| process.service == "etcd");
    let args = &etcd.unwrap().args;
    let has = |pair: [&str; 2]| args.windows(2).any(|words| words == pair);
    assert!(has(["--listen-peer-urls", member::PEERS]));
    assert!(member::PEERS.starts_with("unix://"));
    assert!(args.iter().any(|arg| arg == "--client-cert-auth"));
}

fn of_machines() -> ClusterSpec {
    ClusterSpec {
        network: Network::default().at(Ipv4Addr::new(10, 0, 0, 1)),
        dns: vec![1053, 1054],
        ..spec(Profile::Fast)
    }
}

fn part(kind: Joining) -> Component {
    let spec = of_machines();
    let plane = ControlPlane {
        server: spec.server(),
        spec,
        etcd: vec![
            "https://10.0.0.1:7379".into(),
            "https://10.0.0.3:7379".into(),
        ],
        gateways: vec!["https://10.0.0.1:7443".into()],
    };
    Component {
        initial_cluster: "etcd-10-0-0-1=https://10.0.0.1:7380".to_owned(),
        ..Component::new(kind, Ipv4Addr::new(10, 0, 0, 2), plane, "abcdef")
    }
}

fn value<'a>(process: &'a ProcessSpec, flag: &str) -> Option<&'a str> {
    let mut pairs = process.args.windows(2);
    pairs
        .find(|words| words[0] == flag)
        .map(|words| words[1].as_str())
}

#[test]
fn members_of_etcd_on_several_machines_reach_each_other_by_tls() {
    let first = etcd(&nowhere(), &of_machines());
    let [joined, ..] = components(&nowhere(), &[part(Joining::Etcd)]);
    for (etcd, name, ip) in [
        (&first, "etcd-10-0-0-1", "10.0.0.1"),
        (&joined[1], "etcd-10-0-0-2", "10.0.0.2"),
    ] {
        let value = |flag| value(etcd, flag);
        assert_eq!(value("--name"), Some(name));
        let peers = format!("https://{ip}:7380");
        assert_eq!(value("--listen-peer-urls"), Some(peers.as_str()));
        let clients = format!("https://127.0.0.1:7379,https://{ip}:7379");
        assert_eq!(value("--listen-client-urls"), Some(clients.as_str()));
        let flags = ["--client-cert-auth", "--peer-client-cert-auth"];
        assert!(
            flags
                .iter()
                .all(|flag| etcd.args.iter().any(|arg| arg == flag))
        );
        let ca = value("--peer-trusted-ca-file");
        assert!(ca.is_some() && ca == value("--trusted-ca-file"));
        let hosts = &etcd.identity.as_ref().unwrap().hosts;
        assert!(hosts.contains(&ip.to_owned()), "{hosts:?}");
    }
    assert_eq!(value(&first, "--initial-cluster-state"), None);
    assert_eq!(
        value(&joined[1], "--initial-cluster-state"),
        Some("existing")
    );
    let initial = "etcd-10-0-0-1=https://10.0.0.1:7380";
    assert_eq!(value(&joined[1], "--initial-cluster"), Some(initial));
}

#[test]
fn parts_that_have_joined_have_names_of_their_machine() {
    let parts = [Joining::Gateway, Joining::Controller, Joining::Etcd].map(part);
    let stages = components(&nowhere(), &parts);
    for (index, process) in stages
        .iter()
        .enumerate()
        .flat_map(|(index, stage)| stage.iter().map(move |process| (index, process)))
    {
        assert_eq!(service_of(&process.name), process.service);
        assert_eq!(stage(&process.name), index);
    }
    let [first, middle, last] = stages;
    let names = |processes: &[ProcessSpec]| {
        let names = processes.iter().map(|process| process.name.clone());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&first), "certs-0 etcd-of-10-0-0-2");
    assert_eq!(names(&middle), "gateway-of-10-0-0-2");
    assert_eq!(
        names(&last),
        "deployment-controller-of-10-0-0-2 replicaset-controller-of-10-0-0-2 scheduler-of-10-0-0-2 \
         controller-manager-of-10-0-0-2 dns-of-10-0-0-2"
    );
    let gateway = &middle[0];
    let etcd = "https://10.0.0.1:7379,https://10.0.0.3:7379";
    assert_eq!(value(gateway, "--etcd-endpoints"), Some(etcd));
    assert_eq!(value(gateway, "--advertise"), Some("10.0.0.2"));
    assert_eq!(value(gateway, "--listen-also"), Some("10.0.0.2"));
    // All gateways publish the same.
    let published = Some("https://10.0.0.1:7443");
    assert_eq!(value(gateway, "--cluster-info-server"), published);
    assert_eq!(gateway.port, Some(7443));
    assert_eq!(value(&last[4], "--dns-listen"), Some("10.0.0.2:1053"));
    for client in &last {
        assert_eq!(value(client, "--gateway-address"), published);
        let elects = (client.service != DNS).then_some("2s");
        assert_eq!(value(client, "--election-lease-duration"), elects);
        let files = nowhere().pki().files(&client.name).ca_file;
        let ca = files.display().to_string();
        assert_eq!(value(client, "--tls-ca-file"), Some(ca.as_str()));
    }
}

#[test]
fn gateways_are_known_by_the_addresses_of_relays() {
    let [_, middle, rest] = relayed();
    let (gateways, relays): (Vec<_>, Vec<_>) = middle
        .iter()
        .partition(|process| process.service == "gateway");
    assert_eq!(relays.len(), rest.len());
    for gateway in gateways {
        let hosts = &gateway.identity.as_ref().unwrap().hosts;
        let known = |relay: &ProcessSpec| {
            let ip = relay.relay_ip.unwrap().to_string();
            hosts.contains(&ip)
        };
        assert!(relays.iter().all(|relay| known(relay)), "{hosts:?}");
    }
}

#[test]
fn a_client_with_a_relay_gets_only_the_addresses_of_its_own_relay() {
    let [_, middle, rest] = relayed();
    let relays = middle.iter().filter(|process| process.service == "relay");
    let relays: Vec<_> = relays.collect();
    assert_eq!(relays.len(), rest.len());
    for (process, own) in rest.iter().zip(&relays) {
        assert_eq!(own.name, relay_name(&process.name));
        let ip = own.args.last().unwrap();
        let addresses = format!("https://{ip}:7443,https://{ip}:7444");
        assert_eq!(process.args.last(), Some(&addresses));
        let same = relays.iter().filter(|relay| relay.args.last() == Some(ip));
        assert_eq!(same.count(), 1, "{ip}");
    }
    let expected = "relay --to 127.0.0.1:7443 --to 127.0.0.1:7444 --at 127.0.103.2";
    let scheduler = relays.iter().find(|one| one.name == "relay-scheduler-1");
    assert_eq!(
        scheduler.map(|one| one.args.join(" ")).as_deref(),
        Some(expected)
    );
}

#[test]
fn the_fast_profile_sets_the_lease_timing_of_elected_services_only() {
    let [_, _, rest] = topology(Profile::Fast);
    for process in rest {
        let is_fast = process
            .args
            .iter()
            .any(|arg| arg == "--election-lease-duration");
        assert_eq!(is_fast, process.service != "node-agent", "{}", process.name);
    }
}
