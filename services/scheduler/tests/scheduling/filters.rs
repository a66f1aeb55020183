//! Filters that depend on one node only.

use crate::world::{NodeB, PodB, node, objections, pod, world};

fn objection(node: NodeB, placed: Option<PodB>, incoming: &PodB) -> String {
    let placed: Vec<_> = placed.into_iter().collect();
    objections(&world(&[node], &placed, &[]), incoming).remove(0)
}

/// Checks F5: upstream's `TestNodePorts`.
#[test]
fn a_host_port_is_for_one_pod() {
    let port = |ports: &[&str]| {
        let add = |pod: PodB, port: &&str| pod.port(port);
        ports.iter().fold(pod("p"), add)
    };
    let sidecar = |policy: Option<&str>| {
        port(&["TCP/0.0.0.0/8001"]).with(|spec| {
            spec.init_containers = std::mem::take(&mut spec.containers);
            spec.init_containers[0].restart_policy = policy.map(Into::into);
        })
    };
    let taken = "node(s) didn't have free ports for the requested pod ports";
    // The ports of the Pod, those that are taken, and whether they conflict.
    let cases: Vec<(PodB, &[&str], bool)> = vec![
        (pod("p"), &[], false),
        (
            port(&["UDP/127.0.0.1/8080"]),
            &["UDP/127.0.0.1/9090"],
            false,
        ),
        (port(&["UDP/127.0.0.1/8080"]), &["UDP/127.0.0.1/8080"], true),
        (port(&["TCP/127.0.0.1/8080"]), &["TCP/127.0.0.1/8080"], true),
        (
            port(&["TCP/127.0.0.1/8080"]),
            &["TCP/127.0.0.2/8080"],
            false,
        ),
        (
            port(&["UDP/127.0.0.1/8080"]),
            &["TCP/127.0.0.1/8080"],
            false,
        ),
        (
            port(&["UDP/127.0.0.1/8000", "UDP/127.0.0.1/8080"]),
            &["UDP/127.0.0.1/8080"],
            true,
        ),
        (
            port(&["TCP/127.0.0.1/8001", "UDP/127.0.0.1/8080"]),
            &["TCP/127.0.0.1/8001", "UDP/127.0.0.1/8081"],
            true,
        ),
        (port(&["TCP/0.0.0.0/8001"]), &["TCP/127.0.0.1/8001"], true),
        (
            port(&["TCP/10.0.10.10/8001", "TCP/0.0.0.0/8001"]),
            &["TCP/127.0.0.1/8001"],
            true,
        ),
        (port(&["TCP/127.0.0.1/8001"]), &["TCP/0.0.0.0/8001"], true),
        (port(&["UDP/127.0.0.1/8001"]), &["TCP/0.0.0.0/8001"], false),
        (
            port(&["UDP/127.0.0.1/8001"]),
            &["TCP/0.0.0.0/8001", "UDP/0.0.0.0/8001"],
            true,
        ),
        (sidecar(None), &["TCP/0.0.0.0/8001"], false),
        (sidecar(Some("Always")), &["TCP/0.0.0.0/8001"], true),
    ];
    for (n, (incoming, ports, conflict)) in cases.into_iter().enumerate() {
        let placed = port(ports).on("a");
        let expected = if conflict { taken } else { "" };
        assert_eq!(
            objection(node("a"), Some(placed), &incoming),
            expected,
            "case {n}"
        );
    }
}

/// Checks C8: upstream's `TestNodeUnschedulable`.
#[test]
fn a_cordoned_node_takes_pods_that_tolerate_that() {
    let key = "node.kubernetes.io/unschedulable";
    let refused = "node(s) were unschedulable";
    let tolerant = |key: &str, effect: &str| pod("p").tolerates(key, "Exists", "", effect);
    for (cordoned, incoming, expected) in [
        (true, pod("p"), refused),
        (false, pod("p"), ""),
        (true, tolerant(key, "NoSchedule"), ""),
        (true, tolerant(key, ""), ""),
        (true, tolerant(key, "NoExecute"), refused),
        (true, tolerant("other", ""), refused),
    ] {
        let node = match cordoned {
            true => node("a").cordoned(),
            false => node("a"),
        };
        assert_eq!(objection(node, None, &incoming), expected);
    }
}

/// Upstream's `TestTaintTolerationFilter`.
#[test]
fn a_tainted_node_takes_pods_that_tolerate_all_hard_taints() {
    let taint = |effect: &str| node("a").taint("dedicated", "user1", effect);
    let tolerant = |operator: &str, value: &str, effect: &str| {
        pod("p").tolerates("dedicated", operator, value, effect)
    };
    let refused = "node(s) had untolerated taint(s)";
    for (n, (node, incoming, expected)) in [
        (taint("NoSchedule"), pod("p"), refused),
        (
            taint("NoSchedule"),
            tolerant("Equal", "user1", "NoSchedule"),
            "",
        ),
        (
            taint("NoSchedule"),
            tolerant("Equal", "user2", "NoSchedule"),
            refused,
        ),
        (
            taint("NoSchedule"),
            tolerant("Exists", "", "NoSchedule"),
            "",
        ),
        (
            taint("NoSchedule").taint("foo", "", "NoSchedule"),
            tolerant("Exists", "", ""),
            refused,
        ),
        (
            taint("NoSchedule"),
            tolerant("Equal", "user1", "PreferNoSchedule"),
            refused,
        ),
        (taint("PreferNoSchedule"), pod("p"), ""),
        (taint("NoExecute"), pod("p"), refused),
        (node("a"), pod("p"), ""),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(objection(node, None, &incoming), expected, "case {n}");
    }
}

/// Upstream's cases of node selectors, affinity, and fields.
#[test]
fn a_pod_runs_where_the_labels_and_names_that_it_requires_are() {
    let labeled = || node("a").labels("foo=bar,zone=b");
    let labels = "node(s) didn't match Pod's node affinity/selector";
    let others = "node(s) didn't satisfy plugin(s) [NodeAffinity]";
    for (n, (incoming, expected)) in [
        (pod("p").selects("foo=bar"), ""),
        (pod("p").selects("foo=bar,zone=c"), labels),
        (pod("p").wants("foo in (bar, value2)"), ""),
        (pod("p").wants("foo in (value1)"), labels),
        (pod("p").wants("foo in (value1)").wants("foo=bar"), ""),
        (pod("p").wants("foo,zone notin (c)"), ""),
        (pod("p").wants("foo,!zone"), labels),
        (pod("p").selects("foo=bar").wants("zone=c"), labels),
        (pod("p").wants("name in (a)"), ""),
        (pod("p").wants("name in (b)"), others),
        (pod("p").wants("name in (b)").wants("name in (a)"), ""),
        (pod("p").wants("name in (b)").wants("foo=bar"), ""),
        (pod("p").wants("name in (b)").wants("foo=other"), labels),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(objection(labeled(), None, &incoming), expected, "case {n}");
    }
}

/// Checks F13 and F20: upstream's `TestEnoughRequests`.
#[test]
fn a_node_takes_what_is_left() {
    let sized = || {
        node("a")
            .has("cpu", "10")
            .has("memory", "20")
            .has("pods", "32")
            .has("gpu/x", "5")
    };
    let of = |cpu: &str, memory: &str| pod("p").requests(&[("cpu", cpu), ("memory", memory)]);
    let used = |cpu, memory| Some(of(cpu, memory).on("a"));
    let init = |pod: PodB, cpu: &str, always: bool| {
        pod.cpu(cpu).with(|spec| {
            let mut container = spec.containers.pop().expect("the new one");
            container.restart_policy = always.then(|| "Always".into());
            spec.init_containers.push(container);
        })
    };
    let gpu = |count: &str| pod("p").requests(&[("gpu/x", count)]);
    let (cpu, memory) = ("Insufficient cpu", "Insufficient memory");
    for (n, (placed, incoming, expected)) in [
        (used("10", "20"), pod("p"), ""),
        (
            used("10", "20"),
            of("1", "1"),
            "Insufficient cpu, Insufficient memory",
        ),
        (used("8", "19"), of("3", "1"), cpu),
        (used("5", "19"), of("1", "2"), memory),
        (used("5", "5"), of("1", "1"), ""),
        (used("10", "19"), of("0", "1"), ""),
        (used("8", "19"), init(of("1", "1"), "3", false), cpu),
        (used("8", "19"), init(of("1", "1"), "2", false), ""),
        // A sidecar runs beside the init containers after it and beside the others.
        (None, init(init(of("1", "1"), "5", true), "6", false), cpu),
        (None, init(init(of("1", "1"), "5", true), "5", false), ""),
        (None, init(init(of("6", "1"), "4", false), "5", true), cpu),
        (None, gpu("5"), ""),
        (None, gpu("6"), "Insufficient gpu/x"),
        (
            None,
            pod("p").requests(&[("none/x", "1")]),
            "Insufficient none/x",
        ),
        (
            used("9223372036854775807", "7Ei"),
            of("1", "1"),
            "Insufficient cpu, Insufficient memory",
        ),
        (
            Some(of("0", "7Ei").requests(&[("memory", "7Ei")]).on("a")),
            of("0", "1"),
            memory,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(objection(sized(), placed, &incoming), expected, "case {n}");
    }
    let full = objection(sized().has("pods", "1"), used("1", "1"), &pod("p"));
    assert_eq!(full, "Too many pods");
}
