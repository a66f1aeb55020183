use setpoint_model::Cidr;

use super::free::all_taken;
use super::*;

fn network(number: u8) -> Network {
    let kind = Kind::Bridge;
    Network { number, kind }
}

fn range(text: &str) -> Cidr {
    text.parse().unwrap()
}

#[test]
fn clusters_have_ranges_of_their_own() {
    let all: Vec<_> = (0..NUMBERS).map(network).collect();
    let ranges = all
        .iter()
        .flat_map(|one| [one.pods(), one.nodes(), one.services()]);
    let ranges: Vec<_> = ranges.map(|text| range(&text)).collect();
    for (index, one) in ranges.iter().enumerate() {
        let others = ranges.iter().skip(index + 1);
        assert!(others.clone().all(|other| !one.overlaps(*other)));
    }
    assert_eq!(all[0].node_ports(), "30000-32767");
    assert_eq!(all[1].node_ports(), "27232-29999");
    assert_eq!(all[7].node_ports(), "10624-13391");
}

#[test]
fn addresses_of_a_cluster_are_in_its_ranges() {
    let first = network(0);
    let nodes = [first.gateway(), first.node(0), first.node(1)].map(Option::unwrap);
    for (within, addresses) in [
        (first.nodes(), nodes.as_slice()),
        (
            first.services(),
            &[first.api_service(), first.dns_service()],
        ),
    ] {
        assert!(addresses.iter().all(|ip| range(&within).contains(*ip)));
    }
    assert_eq!(Network::default().gateway(), None);
    assert_eq!(Network::default().node(0), None);
}

#[test]
fn addresses_of_the_loopback_need_no_right() {
    let network = Network {
        number: 2,
        kind: Kind::Loopback,
    };
    assert_eq!(network.services(), "127.98.0.0/16");
    assert_eq!(network.pods_of(1).as_deref(), Some("127.130.1.0/24"));
    assert_eq!(network.pods(), "127.130.0.0/16");
    assert_eq!(network.gateway(), None);
}

#[test]
fn a_cluster_that_was_never_started_has_no_network() {
    let root = tempfile::tempdir().unwrap();
    let state_dir = StateDir::find(root.path(), None);
    assert_eq!(Network::load(&state_dir).unwrap(), None);
    Network::forget(&state_dir).unwrap();
}

#[test]
fn clusters_that_have_all_networks_are_named() {
    let others = ["/a", "/b"].map(PathBuf::from);
    assert_eq!(
        all_taken(&others),
        "other local clusters have all 8 networks of this machine: /a, /b; end one with `setpoint down --state` and its directory"
    );
}

#[test]
fn a_cluster_of_several_machines_is_reached_at_the_address_of_this_one() {
    let address = Ipv4Addr::new(192, 168, 7, 1);
    let network = Network {
        number: 0,
        kind: Kind::Machines(address),
    };
    assert_eq!(network.gateway(), Some(address));
    assert_eq!(network.machine(), Some(address));
    assert_eq!(network.node(0), None);
    assert!(network.gives_ranges() && !network.has_bridge());
    let text = serde_json::to_string(&network).unwrap();
    assert_eq!(serde_json::from_str::<Network>(&text).unwrap(), network);
}

#[test]
fn the_data_of_a_cluster_are_of_one_machine_or_of_several() {
    let root = tempfile::tempdir().unwrap();
    let state_dir = StateDir::find(root.path(), None);
    let [one, other] = [1, 2].map(|host| Ipv4Addr::new(10, 0, 0, host));
    let (alone, of_machines) = (Network::default(), Network::default().at(one));
    for (network, kind, expected) in [
        (
            alone,
            Kind::Machines(one),
            "the cluster was started for this machine alone",
        ),
        (
            of_machines,
            Kind::Machines(other),
            "start it with --machine 10.0.0.1",
        ),
        (
            of_machines,
            Kind::Bridge,
            "start it with --machine 10.0.0.1",
        ),
    ] {
        let why = network.again(&state_dir, kind).unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
    }
}
