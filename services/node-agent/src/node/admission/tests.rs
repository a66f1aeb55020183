use setpoint_model::HostPort;
use setpoint_model::pod::{DEFERRED, INFEASIBLE};
use setpoint_proto::core::Container;
use setpoint_proto::meta::Quantity;

use super::*;

fn admission() -> Admission {
    let capacity = NodeCapacity {
        resources: resources(1000, 1000, 1000),
        pods: 3,
        network: PodNetwork::new(Ipv4Addr::new(10, 1, 2, 0)),
    };
    Admission::new([("node".to_owned(), capacity)])
}

fn resources(millicpu: i64, memory: i64, storage: i64) -> Resources {
    Resources {
        millicpu,
        memory,
        others: [("ephemeral-storage".to_owned(), storage)].into(),
    }
}

fn demand(millicpu: i64, memory: i64) -> Demand {
    Demand {
        requests: Resources {
            millicpu,
            memory,
            ..Resources::default()
        },
        ..Demand::default()
    }
}

fn admit(admission: &Admission, name: &str, millicpu: i64) -> Result<[u8; 4], String> {
    let demand = demand(millicpu, 1);
    let key = Key::new("a", name);
    let check = || admission.check(&key, name, "node", &demand);
    let admitted = admission.admit(&key, name, "node", &demand);
    let checked = check().map_err(|rejection| rejection.reason());
    assert_eq!(admitted.is_ok(), checked.is_ok());
    checked.map(|ip| ip.expect("it is admitted").octets())
}

#[test]
fn a_check_takes_nothing() {
    let (admission, key) = (admission(), Key::new("a", "web"));
    let most = demand(1000, 1000);
    for uid in ["1", "2"] {
        assert_eq!(admission.check(&key, uid, "node", &most), Ok(None));
    }
    admission.admit(&key, "1", "node", &most).unwrap();
    let successor = admission.check(&key, "2", "node", &most);
    assert_eq!(successor, Ok(None), "it takes the place of its namesake");
    admission.admit(&key, "2", "node", &most).unwrap();
    admission.release(&key, "1");
    assert_eq!(admit(&admission, "other", 1), Err("OutOfcpu".into()));
}

/// Checks N8.
#[test]
fn a_pod_that_does_not_fit_is_rejected_until_another_is_released() {
    let admission = admission();
    assert_eq!(admit(&admission, "first", 600), Ok([10, 1, 2, 2]));
    assert_eq!(admit(&admission, "second", 600), Err("OutOfcpu".into()));
    assert_eq!(admit(&admission, "third", 400), Ok([10, 1, 2, 3]));
    admission.release(&Key::new("a", "first"), "first");
    assert_eq!(admit(&admission, "second", 600), Ok([10, 1, 2, 2]));
}

/// Checks N8.
#[test]
fn a_node_admits_no_more_than_its_maximum_of_pods() {
    let admission = admission();
    let admitted = ["a", "b", "c", "d"].map(|name| admit(&admission, name, 0).is_ok());
    assert_eq!(admitted, [true, true, true, false]);
}

/// Admits a Pod that requests resources of these names and amounts; returns the reason and the message of its
/// rejection.
fn admit_with(
    admission: &Admission,
    name: &str,
    amounts: &[(&str, i64)],
) -> Option<(String, String)> {
    let mut container = Container::default();
    for (resource, amount) in amounts {
        let amount = Quantity::new(amount.to_string());
        container
            .resources
            .requests
            .insert((*resource).to_owned(), amount);
    }
    let demand = Demand::of(&PodSpec {
        containers: vec![container],
        ..PodSpec::default()
    });
    let key = Key::new("a", name);
    let checked = admission.check(&key, name, "node", &demand);
    let admitted = admission.admit(&key, name, "node", &demand);
    assert_eq!(checked.is_ok(), admitted.is_ok());
    let rejection = checked.err()?;
    Some((rejection.reason(), rejection.message()))
}

fn reason(rejection: Option<(String, String)>) -> String {
    rejection.map(|(reason, _)| reason).unwrap_or_default()
}

/// Checks N8 and K13.
#[test]
fn ephemeral_storage_is_admitted_as_cpu_and_memory_are() {
    let admission = admission();
    let storage = |amount| [("ephemeral-storage", amount)];
    assert_eq!(admit_with(&admission, "first", &storage(600)), None);
    let message = "Node didn't have enough resource: ephemeral-storage, requested: 600, used: 600, capacity: 1000";
    let expected = ("OutOfephemeral-storage".into(), message.into());
    assert_eq!(
        admit_with(&admission, "second", &storage(600)),
        Some(expected)
    );
    admission.release(&Key::new("a", "first"), "first");
    assert_eq!(admit_with(&admission, "second", &storage(600)), None);
}

#[test]
fn the_first_lack_in_the_order_of_the_kubelet_is_reported() {
    let admission = admission();
    let all = [
        ("example.com/gpu", 9),
        ("ephemeral-storage", 9999),
        ("memory", 9999),
        ("cpu", 9999),
    ];
    for (count, expected) in [
        (4, "OutOfcpu"),
        (3, "OutOfmemory"),
        (2, "OutOfephemeral-storage"),
    ] {
        assert_eq!(
            reason(admit_with(&admission, "any", &all[..count])),
            expected
        );
    }
    for name in ["a", "b", "c"] {
        assert_eq!(admit_with(&admission, name, &[]), None);
    }
    assert_eq!(reason(admit_with(&admission, "any", &all)), "OutOfpods");
}

/// As in the kubelet, which leaves the resources of the cluster, that no node has, to others.
#[test]
fn an_extended_resource_is_checked_if_the_node_has_it() {
    let admission = admission();
    let gpus = |amount| [("example.com/gpu", amount)];
    assert_eq!(admit_with(&admission, "before", &gpus(1)), None);
    admission.set_added("node", [("example.com/gpu".to_owned(), 2)].into());
    let lacking = "OutOfexample.com/gpu";
    assert_eq!(reason(admit_with(&admission, "two", &gpus(2))), lacking);
    assert_eq!(admit_with(&admission, "one", &gpus(1)), None);
    admission.release(&Key::new("a", "before"), "before");
    admission.set_added("node", [("example.com/gpu".to_owned(), 0)].into());
    assert_eq!(reason(admit_with(&admission, "more", &gpus(1))), lacking);
    let pages = [("hugepages-2Mi", 1)];
    assert_eq!(
        reason(admit_with(&admission, "pages", &pages)),
        "OutOfhugepages-2Mi"
    );
}

#[test]
fn admitting_a_pod_again_returns_the_same_address() {
    let admission = admission();
    assert_eq!(
        admit(&admission, "first", 600),
        admit(&admission, "first", 600)
    );
}

/// Checks F13.
#[test]
fn requests_of_any_size_neither_overflow_nor_leak() {
    let admission = admission();
    let most = demand(i64::MAX, i64::MAX);
    for name in ["a", "b"] {
        admission.restore(&Key::new("a", name), name, "node", &most, None);
    }
    assert_eq!(admit(&admission, "new", 1), Err("OutOfcpu".into()));
    for name in ["a", "b"] {
        admission.release(&Key::new("a", name), name);
    }
    assert!(admit(&admission, "new", 1000).is_ok());
    assert!(admit(&admission, "newer", i64::MAX).is_err());
}

#[test]
fn a_restored_pod_keeps_its_address_even_if_it_no_longer_fits() {
    let admission = admission();
    let ip = Ipv4Addr::new(10, 1, 2, 77);
    admission.restore(
        &Key::new("a", "old"),
        "old",
        "node",
        &demand(5000, 0),
        Some(ip),
    );
    assert_eq!(admit(&admission, "old", 5000), Ok(ip.octets()));
    assert_eq!(admit(&admission, "new", 1), Err("OutOfcpu".into()));
}

/// Checks F5.
#[test]
fn a_host_port_of_a_node_is_of_one_pod() {
    let admission = admission();
    let check = |name: &str, port: i32| {
        let demand = Demand {
            ports: vec![HostPort {
                ip: "0.0.0.0".into(),
                protocol: "TCP".into(),
                port,
            }],
            ..Demand::default()
        };
        let key = Key::new("a", name);
        let checked = admission.check(&key, name, "node", &demand);
        let admitted = admission.admit(&key, name, "node", &demand);
        assert_eq!(checked.is_ok(), admitted.is_ok());
        checked.map(drop)
    };
    assert_eq!(check("first", 8080), Ok(()));
    assert_eq!(check("first", 8080), Ok(()), "its own port");
    assert_eq!(check("second", 8080), Err(Rejection::HostPort));
    assert_eq!(check("third", 8081), Ok(()));
    admission.release(&Key::new("a", "first"), "first");
    assert_eq!(check("second", 8080), Ok(()));
}

fn spec(millicpu: i64) -> PodSpec {
    let mut container = Container {
        name: "main".into(),
        ..Container::default()
    };
    let cpu = Quantity::new(format!("{millicpu}m"));
    container.resources.requests.insert("cpu".into(), cpu);
    PodSpec {
        containers: vec![container],
        ..PodSpec::default()
    }
}

/// Resizes a Pod if that fits; returns why it does not.
fn resize(admission: &Admission, name: &str, millicpu: i64) -> Result<Vec<Key>, &'static str> {
    let key = Key::new("a", name);
    let Some((_, resize)) = admission.resize_of(&key, name, &spec(millicpu)) else {
        return Err("it has these resources");
    };
    let resized = admission.resize(&key, name, &resize.demand);
    assert_eq!(resized.is_ok(), resize.verdict.is_ok());
    resize.verdict.map_err(|pending| pending.reason)?;
    Ok(resized.unwrap())
}

#[test]
fn a_resize_waits_until_another_pod_leaves_room_or_forever_if_the_node_is_too_small() {
    let admission = admission();
    for name in ["one", "two"] {
        let demand = Demand::of(&spec(400));
        admission
            .admit(&Key::new("a", name), name, "node", &demand)
            .unwrap();
    }
    assert_eq!(
        resize(&admission, "one", 400),
        Err("it has these resources")
    );
    assert_eq!(resize(&admission, "one", 1001), Err(INFEASIBLE));
    assert_eq!(resize(&admission, "one", 700), Err(DEFERRED));
    let waiting = vec![Key::new("a", "one")];
    assert_eq!(resize(&admission, "two", 350), Ok(waiting.clone()));
    assert_eq!(resize(&admission, "one", 700), Err(DEFERRED));
    assert_eq!(admission.release(&Key::new("a", "two"), "two"), waiting);
    assert_eq!(resize(&admission, "one", 700), Ok(Vec::new()));
    assert_eq!(admit(&admission, "three", 301), Err("OutOfcpu".into()));
    assert_eq!(resize(&admission, "one", 100), Ok(Vec::new()));
    assert_eq!(admit(&admission, "three", 900), Ok([10, 1, 2, 3]));
}

#[test]
fn a_pending_resize_names_the_resource_as_the_kubelet_does() {
    let admission = admission();
    for name in ["one", "two"] {
        let demand = Demand::of(&spec(400));
        admission
            .admit(&Key::new("a", name), name, "node", &demand)
            .unwrap();
    }
    let message = |millicpu| {
        let resize = admission.resize_of(&Key::new("a", "one"), "one", &spec(millicpu));
        resize.unwrap().1.verdict.unwrap_err().message
    };
    let deferred =
        "Node didn't have enough resource: cpu, requested: 700, used: 400, capacity: 1000";
    assert_eq!(message(700), deferred);
    let infeasible = "Node didn't have enough capacity: cpu, requested: 2000, capacity: 1000";
    assert_eq!(message(2000), infeasible);
}

#[test]
fn the_address_of_a_sandbox_is_held_until_its_pod_is_known_and_counts_as_no_pod() {
    let admission = admission();
    let key = |name: &str| Key::new("a", name);
    for (name, host) in [("one", 2), ("two", 3), ("done", 4), ("gone", 5)] {
        let ip = Some(Ipv4Addr::new(10, 1, 2, host));
        admission.hold(&key(name), name, "node", ip);
    }
    assert_eq!(admit(&admission, "static", 1000), Ok([10, 1, 2, 6]));
    let most = demand(1000, 998);
    let ip = Some(Ipv4Addr::new(10, 1, 2, 3));
    admission.restore(&key("two"), "two", "node", &most, ip);
    let restored = admission.check(&key("two"), "two", "node", &most);
    assert_eq!(restored, Ok(ip));
    // The one that follows has another uid.
    assert_eq!(
        admission.check(&key("one"), "next", "node", &demand(0, 0)),
        Ok(None)
    );
    admission.release(&key("done"), "done");
    assert_eq!(admit(&admission, "third", 0), Ok([10, 1, 2, 4]));
    assert_eq!(admit(&admission, "fourth", 0), Err("OutOfpods".into()));
}
