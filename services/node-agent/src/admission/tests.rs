use setpoint_model::pod::{DEFERRED, INFEASIBLE};
use setpoint_proto::core::Container;
use setpoint_proto::meta::Quantity;

use super::*;

fn admission() -> Admission {
    let capacity = NodeCapacity {
        requests: Requests {
            millicpu: 1000,
            memory: 1000,
        },
        pods: 3,
        network: Ipv4Addr::new(10, 1, 2, 0),
    };
    Admission::new([("node".to_owned(), capacity)])
}

fn demand(millicpu: i64, memory: i64) -> Demand {
    Demand {
        requests: Requests { millicpu, memory },
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
