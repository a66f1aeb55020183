//! The view of a Pod.

use serde_json::{Value, json};
use setpoint_controller::View as _;
use setpoint_horizontalpodautoscaler_controller::{Phase, PodView, Readiness};

use crate::decisions::fixture::{NAMESPACE, ago, labels, pod};

fn view(spec: Value, status: Value) -> PodView {
    let json = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "namespace": NAMESPACE, "labels": {"app": "web"}, "annotations": {"a": "b"}},
        "spec": spec, "status": status,
    });
    PodView::of(serde_json::from_value(json).unwrap())
}

#[test]
fn phase_readiness_and_start_are_those_of_the_status() {
    let of_status = |status| view(json!({}), status);
    for (phase, expected) in [
        ("Pending", Phase::Pending),
        ("Running", Phase::Running),
        ("Failed", Phase::Failed),
        ("Succeeded", Phase::Other),
        ("Unknown", Phase::Other),
    ] {
        assert_eq!(of_status(json!({"phase": phase})).phase, expected);
    }
    for (status, ready) in [
        ("True", Some(true)),
        ("False", Some(false)),
        ("Unknown", None),
    ] {
        let condition =
            json!({"type": "Ready", "status": status, "lastTransitionTime": ago(7).to_string()});
        let readiness = Some(Readiness {
            ready,
            since: ago(7),
        });
        assert_eq!(
            of_status(json!({"conditions": [condition]})).readiness,
            readiness
        );
    }
    let started = of_status(json!({"startTime": ago(9).to_string()}));
    assert_eq!((started.started, started.readiness), (Some(ago(9)), None));
    assert_eq!(started.labels, labels("web"));
    assert!(started.meta.labels.is_empty() && started.meta.annotations.is_empty());
}

#[test]
fn a_pod_is_ready_while_it_runs_and_its_condition_holds() {
    let is_ready = |phase, ready| {
        let readiness = Readiness {
            ready,
            since: ago(7),
        };
        let pod = PodView {
            phase,
            readiness: Some(readiness),
            ..pod("a")
        };
        pod.is_ready()
    };
    assert!(is_ready(Phase::Running, Some(true)));
    assert!(!is_ready(Phase::Running, Some(false)));
    assert!(!is_ready(Phase::Running, None));
    assert!(!is_ready(Phase::Other, Some(true)));
}

#[test]
fn a_pod_with_requests_of_its_own_has_those_of_its_containers_for_other_resources() {
    let of = |own: Value| {
        let requests = json!({"cpu": "100m", "memory": "1Ki", "example.com/gpu": "2"});
        let container = json!({"name": "main", "resources": {"requests": requests}});
        let spec = json!({"containers": [container], "resources": {"requests": own}});
        view(spec, json!({}))
    };
    // The requests of the Pod itself; those for CPU, memory and another resource.
    let gpu = "example.com/gpu";
    for (own, expected) in [
        (json!({"memory": "2Ki"}), [100, 2_048_000, 2_000]),
        (json!({"cpu": "300m"}), [300, 1_024_000, 2_000]),
        (json!({"hugepages-2Mi": "4Mi"}), [100, 1_024_000, 2_000]),
    ] {
        let pod = of(own.clone());
        let requests = ["cpu", "memory", gpu].map(|name| pod.request(name, None).unwrap());
        assert_eq!(requests, expected, "{own}");
        let missing = "missing pod-level request for example.com/fpga in Pod a";
        assert_eq!(
            pod.request("example.com/fpga", None),
            Err(missing.to_owned())
        );
    }
    let missing = of(json!({gpu: "1"})).request("example.com/fpga", None);
    assert_eq!(
        missing,
        Err("missing request for example.com/fpga in container main of Pod a".to_owned()),
        "a Pod cannot request other resources itself"
    );
}
