//! Two clients that overwrite each other's field are reported once, by one of several gateways.

use serde_json::Value;
use setpoint_tests::{Cluster, Size, eventually};

use crate::web::{apply, text};

fn flapping(kubectl: &setpoint_tests::Kubectl) -> Vec<Value> {
    let events = kubectl.json("get events -n production --field-selector reason=FieldFlapping");
    events["items"].as_array().cloned().unwrap_or_default()
}

fn counted(cluster: &Cluster, gateways: usize) -> f64 {
    let metrics = (0..gateways).map(|n| cluster.kubectl_at(n).ok("get --raw /metrics"));
    let of_gateway = |metrics: String| -> f64 {
        let lines = metrics
            .lines()
            .filter(|line| line.starts_with("setpoint_flaps_total"));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        values.sum()
    };
    metrics.map(of_gateway).sum()
}

#[test]
fn clients_that_undo_each_others_writes_are_reported_with_the_field_and_controllers_are_not() {
    let gateways = 2;
    let cluster = Cluster::start(Size {
        gateways,
        process_nodes: 0,
        simulated_nodes: 2,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    for round in 0..4 {
        // Each client uses a gateway of its own; the controllers write sets and status in between.
        for (n, (manager, replicas)) in [("alice", 2), ("bob", 4)].into_iter().enumerate() {
            let patch = format!(r#"{{"spec":{{"replicas":{replicas}}}}}"#);
            let kubectl = cluster.kubectl_at(n);
            kubectl.ok(&format!(
                "patch deployment web-frontend -n production --field-manager={manager} -p {patch}"
            ));
            let done = "rollout status deployment/web-frontend -n production --timeout=60s";
            assert!(kubectl.run(done).success, "round {round}");
        }
    }
    // Eight writes are two flaps of four.
    let events = eventually("both flaps are reported", || {
        let events = flapping(&kubectl);
        let count = events
            .iter()
            .filter_map(|event| event["count"].as_i64())
            .sum::<i64>();
        (count == 2)
            .then_some(events.clone())
            .ok_or(format!("{events:?}"))
    });
    assert_eq!(events.len(), 1, "{events:?}");
    let event = &events[0];
    assert_eq!(text(event, "/involvedObject/kind"), "Deployment");
    assert_eq!(text(event, "/type"), "Warning");
    let message = "alice and bob undo each other's writes of spec.replicas";
    assert_eq!(text(event, "/message"), message);
    // The gateway counts after it has reported, and the other gateway sees the report later.
    eventually("both flaps are counted", || {
        let counted = counted(&cluster, gateways);
        let both = (counted - 2.0).abs() < 0.1;
        both.then_some(()).ok_or(counted.to_string())
    });
    let flap = eventually("the other gateway reports them", || {
        let why = cluster.setpoint_json(1, "why deploy/web-frontend -n production")?;
        let flap = why.pointer("/flaps/0").cloned();
        flap.ok_or(why.to_string())
    });
    assert_eq!(flap["field"], "spec.replicas");
    assert_eq!(flap["managers"], serde_json::json!(["alice", "bob"]));
    let described = kubectl.ok("describe deployment web-frontend -n production");
    assert!(described.contains(message), "{described}");
}
