//! Replicas announce themselves and their addresses, and leave.

use std::time::Duration;

use setpoint_controller::Membership;
use setpoint_proto::coordination::Lease;
use tokio::time::sleep;

use crate::server::{Faults, Server, eventually, namespace};

fn lease(server: &Server, name: &str) -> Option<Lease> {
    server.get("setpoint-replicas", name)
}

async fn server() -> Server {
    let server = Server::start().await;
    server.put(&namespace("setpoint-replicas"));
    server
}

fn announce(server: &Server, instance: &str, address: &str) -> Membership {
    Membership::announce(server.client(instance), "scheduler", instance, address)
}

async fn until_there(server: &Server, name: &str) -> Lease {
    eventually(name, async || lease(server, name).is_some()).await;
    lease(server, name).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_replica_is_found_by_its_lease_until_it_takes_leave() {
    let server = server().await;
    let membership = announce(&server, "scheduler-My.host", "10.0.0.7:8080");
    let there = until_there(&server, "scheduler-my.host").await;
    assert_eq!(there.metadata.labels["setpoint.dev/service"], "scheduler");
    let address = &there.metadata.annotations["setpoint.dev/address"];
    assert_eq!(address, "10.0.0.7:8080");
    let holder = there.spec.holder_identity.as_deref();
    assert_eq!(holder, Some("scheduler-My.host"));
    let before = server.calls("Update");
    sleep(Duration::from_secs(100)).await;
    assert_eq!(
        server.calls("Update") - before,
        10,
        "one renewal in ten seconds"
    );
    membership.leave().await;
    assert!(lease(&server, "scheduler-my.host").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_later_life_under_the_same_name_takes_its_lease_over() {
    let server = server().await;
    let first = announce(&server, "a-0", "10.0.0.1:1");
    until_there(&server, "a-0").await;
    drop(first);
    let _second = announce(&server, "a-0", "10.0.0.2:2");
    eventually("the new address", async || {
        let lease = lease(&server, "a-0").unwrap();
        lease.metadata.annotations["setpoint.dev/address"] == "10.0.0.2:2"
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_whose_renewals_hang_is_announced_again_when_they_succeed() {
    let server = server().await;
    let membership = announce(&server, "a-0", "10.0.0.1:1");
    until_there(&server, "a-0").await;
    let hang = vec!["Update", "Get"];
    server.set_faults(Faults {
        hang,
        ..Faults::default()
    });
    sleep(Duration::from_secs(120)).await;
    server.set_faults(Faults::default());
    let revision = server.revision();
    eventually("it is renewed", async || server.revision() > revision).await;
    membership.leave().await;
    assert!(lease(&server, "a-0").is_none());
}
