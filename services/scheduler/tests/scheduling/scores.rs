//! Scores of nodes by one plugin. The cases are those of upstream's tests.

use setpoint_scheduler::{Plugin, Profile};

use crate::world::{Case, NodeB, PodB, node, only, pod, scores, world};

/// Upstream's `TestLeastAllocatedScoringStrategy` with the default resources.
#[test]
fn nodes_with_much_left_are_preferred() {
    let sized =
        |name: &str, cpu: &str, memory: &str| node(name).has("cpu", cpu).has("memory", memory);
    let equal = || vec![sized("a", "4", "10000"), sized("b", "4", "10000")];
    let both = |cpu: &str, memory: &str| pod("p").requests(&[("cpu", cpu), ("memory", memory)]);
    let on = |node: &str, cpu: &str, memory: &str| both(cpu, memory).on(node);
    let none = || pod("p").requests(&[("cpu", "0"), ("memory", "0")]);
    let cases: Vec<Case<[i64; 2]>> = vec![
        (equal(), vec![], none(), [100, 100]),
        (
            vec![sized("a", "4", "10000"), sized("b", "6", "10000")],
            vec![],
            both("3", "5000"),
            [37, 50],
        ),
        (
            vec![sized("a", "10", "20000"), sized("b", "10", "20000")],
            vec![
                on("a", "3", "0"),
                on("a", "3", "0"),
                on("b", "3", "0"),
                on("b", "3", "5000"),
            ],
            none(),
            [70, 57],
        ),
        (
            vec![sized("a", "10", "20000"), sized("b", "10", "20000")],
            vec![on("a", "3", "0"), on("b", "3", "5000")],
            both("3", "5000"),
            [57, 45],
        ),
        (
            vec![sized("a", "10", "20000"), sized("b", "10", "50000")],
            vec![on("a", "3", "0"), on("b", "3", "5000")],
            both("3", "5000"),
            [57, 60],
        ),
        (
            vec![sized("a", "0", "10000"), sized("b", "4", "10000")],
            vec![],
            both("0", "5000"),
            [50, 75],
        ),
    ];
    for (n, (nodes, placed, incoming, expected)) in cases.into_iter().enumerate() {
        let profile = only(Plugin::NodeResourcesFit);
        let found = scores(world(&nodes, &placed, &[]), profile, &incoming);
        assert_eq!(found, expected, "case {n}");
    }
}

/// Upstream's `TestNodeResourcesBalancedAllocation` with the default resources.
#[test]
fn nodes_whose_resources_are_used_alike_are_preferred() {
    let sized =
        |name: &str, cpu: &str, memory: &str| node(name).has("cpu", cpu).has("memory", memory);
    let both = || pod("p").requests(&[("cpu", "3"), ("memory", "5000")]);
    let cpu = || pod("p").requests(&[("cpu", "3")]);
    let memory = || pod("p").requests(&[("memory", "5000")]);
    let on_each = || vec![cpu().on("a"), both().on("b")];
    let cases: Vec<Case<[i64; 2]>> = vec![
        (
            vec![sized("a", "4", "10000"), sized("b", "4", "10000")],
            vec![],
            pod("p"),
            [0, 0],
        ),
        (
            vec![sized("a", "4", "10000"), sized("b", "6", "10000")],
            vec![],
            both(),
            [68, 75],
        ),
        (
            vec![sized("a", "10", "20000"), sized("b", "10", "20000")],
            on_each(),
            both(),
            [73, 74],
        ),
        (
            vec![sized("a", "10", "20000"), sized("b", "10", "50000")],
            on_each(),
            both(),
            [73, 70],
        ),
        (
            vec![sized("a", "3", "5000"), sized("b", "3", "5000")],
            vec![cpu().on("a")],
            memory(),
            [100, 50],
        ),
        (
            vec![sized("a", "6", "10000"), sized("b", "6", "10000")],
            on_each(),
            cpu(),
            [62, 62],
        ),
    ];
    for (n, (nodes, placed, incoming, expected)) in cases.into_iter().enumerate() {
        let profile = only(Plugin::NodeResourcesBalancedAllocation);
        let found = scores(world(&nodes, &placed, &[]), profile, &incoming);
        assert_eq!(found, expected, "case {n}");
    }
}

/// Checks K12: upstream's `TestTaintTolerationScore`.
#[test]
fn nodes_with_few_untolerated_taints_are_preferred() {
    let soft = |node: NodeB, keys: &[&str]| {
        let taint = |node: NodeB, key: &&str| node.taint(key, "bar", "PreferNoSchedule");
        keys.iter().fold(node, taint)
    };
    let nodes = |taints: &[&[&str]]| {
        let named = ["a", "b", "c"].iter().zip(taints);
        named
            .map(|(name, keys)| soft(node(name), keys))
            .collect::<Vec<_>>()
    };
    let tolerates = |effect: &str| pod("p").tolerates("foo", "Equal", "bar", effect);
    let both = || tolerates("PreferNoSchedule").tolerates("two", "Exists", "", "");
    let cases: Vec<(Vec<NodeB>, PodB, &[i64])> = vec![
        (
            nodes(&[&["foo"], &["other"]]),
            tolerates("PreferNoSchedule"),
            &[100, 0],
        ),
        (
            nodes(&[&[], &["foo"], &["foo", "two"]]),
            both(),
            &[100, 100, 100],
        ),
        (
            nodes(&[&[], &["one"], &["one", "other"]]),
            both(),
            &[100, 50, 0],
        ),
        // A toleration of another effect does not count.
        (nodes(&[&[], &["foo"]]), tolerates("NoSchedule"), &[100, 0]),
        (nodes(&[&[], &["foo"]]), pod("p"), &[100, 0]),
        (nodes(&[&[], &[]]), pod("p"), &[100, 100]),
    ];
    for (n, (nodes, incoming, expected)) in cases.into_iter().enumerate() {
        let profile = only(Plugin::TaintToleration);
        let found = scores(world(&nodes, &[], &[]), profile, &incoming);
        assert_eq!(found, expected, "case {n}");
    }
}

/// Upstream's `TestNodeAffinityPriority`.
#[test]
fn nodes_that_match_heavier_terms_of_preferred_affinity_are_preferred() {
    let one = || pod("p").prefers(2, "foo=bar");
    let three = || {
        let pod = pod("p").prefers(2, "foo=bar").prefers(4, "key=value");
        pod.prefers(5, "foo=bar,key=value,az=az1")
    };
    let nodes = |labels: &[&str]| {
        let named = ["a", "b", "c"].iter().zip(labels);
        named
            .map(|(name, labels)| node(name).labels(labels))
            .collect::<Vec<_>>()
    };
    let cases: Vec<(Vec<NodeB>, PodB, &[i64])> = vec![
        (
            nodes(&["foo=bar", "key=value", "az=az1"]),
            pod("p"),
            &[0, 0, 0],
        ),
        (nodes(&["az=az1", "key=value", "zone=z"]), one(), &[0, 0, 0]),
        (
            nodes(&["foo=bar", "key=value", "az=az1"]),
            one(),
            &[100, 0, 0],
        ),
        (
            nodes(&["foo=bar", "foo=bar,key=value,az=az1", "key=value"]),
            three(),
            &[18, 100, 36],
        ),
        (
            nodes(&["foo=bar", "key=value"]),
            pod("p").prefers(2, "name in (a)"),
            &[100, 0],
        ),
    ];
    for (n, (nodes, incoming, expected)) in cases.into_iter().enumerate() {
        let profile = only(Plugin::NodeAffinity);
        let found = scores(world(&nodes, &[], &[]), profile, &incoming);
        assert_eq!(found, expected, "case {n}");
    }
}

/// Upstream's `TestImageLocalityPriority`.
#[test]
fn nodes_with_large_images_of_the_pod_are_preferred() {
    let having = |name: &str, sizes: &[i64]| {
        let image = |node: NodeB, size: &i64| node.image(&format!("gcr.io/{size}:latest"), *size);
        sizes.iter().fold(node(name), image)
    };
    let of = |sizes: &[i64]| {
        let image = |pod: PodB, size: &i64| pod.image(&format!("gcr.io/{size}"));
        sizes.iter().fold(pod("p"), image)
    };
    let nodes = |sizes: &[&[i64]]| {
        let named = ["a", "b", "c"].iter().zip(sizes);
        named
            .map(|(name, sizes)| having(name, sizes))
            .collect::<Vec<_>>()
    };
    let volume = of(&[30]).with(|spec| {
        let mut volume = setpoint_proto::core::Volume::default();
        let image = volume.volume_source.image.get_or_insert_default();
        image.reference = "gcr.io/300".into();
        spec.volumes.push(volume);
    });
    let init = of(&[30, 300]).with(|spec| spec.init_containers = vec![spec.containers.remove(1)]);
    let cases: Vec<(Vec<NodeB>, PodB, &[i64])> = vec![
        (
            nodes(&[&[40, 300, 2000], &[250, 10]]),
            of(&[40, 250]),
            &[0, 5],
        ),
        (
            nodes(&[&[40, 300, 2000], &[250, 10]]),
            of(&[40, 300]),
            &[7, 0],
        ),
        (
            nodes(&[&[4000, 30], &[250, 10]]),
            of(&[10, 4000]),
            &[100, 0],
        ),
        (
            nodes(&[&[4000, 30], &[250, 10], &[]]),
            of(&[10, 4000]),
            &[66, 0, 0],
        ),
        (
            nodes(&[&[600, 40, 900], &[300, 600, 900], &[]]),
            of(&[300, 600, 900]),
            &[32, 36, 0],
        ),
        (nodes(&[&[20, 30, 40], &[4000, 30]]), of(&[30, 40]), &[1, 0]),
        (nodes(&[&[300, 600, 900], &[4000, 30]]), volume, &[12, 0]),
        (nodes(&[&[40, 300, 2000], &[20, 30, 40]]), init, &[6, 0]),
        (nodes(&[&[40], &[]]), of(&[7]), &[0, 0]),
    ];
    for (n, (nodes, incoming, expected)) in cases.into_iter().enumerate() {
        let profile = only(Plugin::ImageLocality);
        let found = scores(world(&nodes, &[], &[]), profile, &incoming);
        assert_eq!(found, expected, "case {n}");
    }
}

#[test]
fn scores_are_weighed_and_the_default_weights_are_upstreams() {
    let nodes = [node("a"), node("b").taint("foo", "", "PreferNoSchedule")];
    let incoming = pod("p").prefers(1, "name in (b)");
    let found = |profile| scores(world(&nodes, &[], &[]), profile, &incoming);
    let default = found(Profile::default());
    assert_eq!(default[0] - default[1], 3 * 100 - 2 * 100);
    let mut affinity = Profile::default();
    affinity.weights.insert(Plugin::NodeAffinity, 4);
    let changed = found(affinity);
    assert_eq!(changed[0] - changed[1], 3 * 100 - 4 * 100);
}
