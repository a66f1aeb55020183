//! The plan of the registration.

use std::sync::Arc;

use setpoint_controller::{View as _, Whole};
use setpoint_dns::{Action, Renewals, Replica, World, plan};
use setpoint_model::Revision;
use setpoint_proto::discovery::EndpointSlice;

fn replica(name: &str) -> Replica {
    Replica {
        lease: name.to_owned(),
        address: "10.0.0.7".parse().unwrap(),
        port: 5353,
        serves: true,
    }
}

/// The world of the replica `dns-0`, in which these replicas have Leases.
fn world(present: &[&str], slices: Vec<EndpointSlice>) -> World {
    let mut renewals = Renewals::default();
    present
        .iter()
        .for_each(|one| renewals.renewed(one, "dns-0"));
    World {
        me: replica("dns-0"),
        cluster_ip: "10.96.0.10".to_owned(),
        has_service: true,
        slices: slices
            .into_iter()
            .map(|one| Arc::new(Whole::of(one)))
            .collect(),
        renewals,
        reached: Revision::default(),
    }
}

/// The slice that a replica makes, as the gateway has it.
fn slice(name: &str) -> EndpointSlice {
    let mut alone = world(&[name], Vec::new());
    alone.me = replica(name);
    let steps = plan(&alone).steps;
    let [step] = &*steps else {
        panic!("{steps:?}");
    };
    let Action::CreateSlice(slice) = &step.action else {
        panic!("{step:?}");
    };
    let mut slice = (**slice).clone();
    slice.metadata.uid = format!("uid of {name}");
    slice
}

#[track_caller]
fn assert_plan(world: &World, expected: &[&str]) {
    let steps = plan(world).steps;
    let steps: Vec<_> = steps
        .iter()
        .map(|step| match &step.action {
            Action::CreateService(one) => format!("create {}", one.metadata.name),
            Action::CreateSlice(one) => format!("create {}", one.metadata.name),
            Action::UpdateSlice(one) => format!("update {}", one.metadata.name),
            Action::DeleteSlice { name, uid } => format!("delete {name}, {uid}"),
        })
        .collect();
    assert_eq!(steps, expected);
}

#[test]
fn a_replica_that_serves_makes_the_service_and_its_slice() {
    let mut world = world(&["dns-0"], Vec::new());
    world.has_service = false;
    assert_plan(&world, &["create kube-dns", "create kube-dns-dns-0"]);
    let made = slice("dns-0");
    assert_eq!(made.endpoints[0].addresses, ["10.0.0.7"]);
    let ports: Vec<_> = made
        .ports
        .iter()
        .map(|port| (port.protocol.as_deref(), port.port))
        .collect();
    assert_eq!(
        ports,
        [(Some("UDP"), Some(5353)), (Some("TCP"), Some(5353))]
    );
    assert_plan(&self::world(&["dns-0"], vec![made]), &[]);
}

#[test]
fn a_replica_without_a_lease_or_a_reachable_address_makes_no_slice() {
    assert_plan(&world(&[], Vec::new()), &[]);
    let mut local = world(&["dns-0"], Vec::new());
    local.me.address = "127.0.0.1".parse().unwrap();
    assert_plan(&local, &[]);
}

#[test]
fn a_slice_that_differs_is_written_again() {
    let mut other = slice("dns-0");
    other.endpoints[0].addresses = vec!["10.0.0.8".to_owned()];
    assert_plan(&world(&["dns-0"], vec![other]), &["update kube-dns-dns-0"]);
    let mut labelled = slice("dns-0");
    labelled
        .metadata
        .labels
        .insert("note".to_owned(), "kept".to_owned());
    assert_plan(&world(&["dns-0"], vec![labelled]), &[]);
}

#[test]
fn a_replica_that_stops_removes_its_own_slice_and_makes_nothing() {
    let mut world = world(&["dns-0", "dns-1"], vec![slice("dns-0"), slice("dns-1")]);
    world.me.serves = false;
    world.has_service = false;
    assert_plan(&world, &["delete kube-dns-dns-0, uid of dns-0"]);
}

#[test]
fn the_slice_of_a_replica_that_has_ended_is_removed_by_others() {
    let slices = || vec![slice("dns-0"), slice("dns-1")];
    let present = world(&["dns-0", "dns-1"], slices());
    assert_plan(&present, &[]);
    assert_plan(
        &world(&["dns-0"], slices()),
        &["delete kube-dns-dns-1, uid of dns-1"],
    );
    let mut silent = present;
    for _ in 0..4 {
        silent.renewals.renewed("dns-0", "dns-0");
    }
    assert_plan(&silent, &["delete kube-dns-dns-1, uid of dns-1"]);
}

/// The watch of Leases may be behind that of slices.
#[test]
fn a_slice_that_is_newer_than_the_known_leases_is_left_alone() {
    let mut newer = slice("dns-1");
    newer.metadata.resource_version = "7".to_owned();
    let mut world = world(&["dns-0"], vec![slice("dns-0"), newer]);
    assert_plan(&world, &[]);
    world.reached = "7".parse().unwrap();
    assert_plan(&world, &["delete kube-dns-dns-1, uid of dns-1"]);
}
