//! Profiles: the settings, the plugins that they enable and disable, and their arguments.

use std::sync::Arc;

use serde_json::json;
use setpoint_controller::View as _;
use setpoint_proto::core::{NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm};
use setpoint_scheduler::{
    Action, ClusterEvent, NodeView, Plugin, Profile, ProfileSettings, Profiles, Snapshot, helps,
    plan,
};

use crate::world::{HOSTNAME, NodeB, node, objections_of, only, pod, scores, world};

/// The profiles of some settings, or the error.
fn parsed(settings: serde_json::Value) -> Result<Profiles, String> {
    let settings: Vec<ProfileSettings> =
        serde_json::from_value(settings).map_err(|error| error.to_string())?;
    Profiles::of(&settings)
}

/// The profile of some settings without a name.
fn profile(settings: serde_json::Value) -> Profile {
    let profiles = parsed(json!([settings])).expect("they are valid");
    let waiting = Arc::new(pod("p").view());
    Profile::clone(profiles.pending(&waiting).expect("it waits").profile)
}

fn args(plugin: &str, args: serde_json::Value) -> serde_json::Value {
    json!({"pluginConfig": [{"name": plugin, "args": args}]})
}

/// The nodes of the Pods that a plan binds, and `-` for those that it refuses.
fn decided(snapshot: &Snapshot, profiles: &Profiles) -> Vec<(String, String)> {
    let steps = plan(snapshot, profiles).steps.into_iter();
    let decisions = steps.filter_map(|step| {
        let name = step.action.pod().meta.key.name.clone();
        match step.action {
            Action::Bind { node, .. } => Some((name, node)),
            Action::MarkUnschedulable { .. } => Some((name, "-".to_owned())),
            _ => None,
        }
    });
    decisions.collect()
}

#[test]
fn without_settings_there_is_upstreams_default_profile() {
    assert_eq!(profile(json!({})), Profile::default());
}

#[test]
fn each_pod_is_scheduled_by_the_profile_of_its_name_and_no_other() {
    let most = json!({"type": "MostAllocated"});
    let packing = json!({
        "schedulerName": "packing",
        "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": most}}],
    });
    let profiles = parsed(json!([{}, packing])).expect("they are valid");
    let nodes = [node("a"), node("b")];
    let busy = [pod("busy").cpu("1").on("a")];
    let by = |name: &str, scheduler: &str| {
        let scheduler = scheduler.to_owned();
        pod(name)
            .cpu("1")
            .with(|spec| spec.scheduler_name = scheduler)
    };
    let pending = [
        by("1", "packing"),
        by("2", "default-scheduler"),
        by("3", "other"),
        by("4", ""),
    ];
    let decided = decided(&world(&nodes, &busy, &pending), &profiles);
    let expected = [("1", "a"), ("2", "b")].map(|(pod, node)| (pod.to_owned(), node.to_owned()));
    assert_eq!(decided, expected);
}

#[test]
fn a_filter_that_is_disabled_rejects_nothing() {
    let filters = json!({"plugins": {"filter": {"disabled": [
        {"name": "NodeResourcesFit"}, {"name": "NodeUnschedulable"},
    ]}}});
    let nodes = [node("a").cordoned(), node("b").taint("t", "", "NoSchedule")];
    let large = pod("p").cpu("64");
    let snapshot = world(&nodes, &[], &[]);
    let tainted = "node(s) had untolerated taint(s)";
    let found = objections_of(&snapshot, profile(filters), &large);
    assert_eq!(found, ["", tainted]);
    let none = json!({"plugins": {"multiPoint": {"disabled": [{"name": "*"}]}}});
    assert_eq!(objections_of(&snapshot, profile(none), &large), ["", ""]);
    let one = json!({"plugins": {
        "multiPoint": {"disabled": [{"name": "*"}]},
        "filter": {"enabled": [{"name": "TaintToleration"}]},
    }});
    assert_eq!(
        objections_of(&snapshot, profile(one), &large),
        ["", tainted]
    );
}

#[test]
fn scores_are_enabled_with_their_weights_and_disabled() {
    let weights = |plugins| profile(json!({"plugins": plugins})).weights;
    let changed = weights(json!({
        "multiPoint": {"disabled": [{"name": "ImageLocality"}], "enabled": [{"name": "NodeAffinity", "weight": 7}]},
        "score": {"disabled": [{"name": "TaintToleration"}], "enabled": [{"name": "PodTopologySpread", "weight": 500}]},
    }));
    let expected = [
        (Plugin::NodeAffinity, 7),
        (Plugin::NodeResourcesFit, 1),
        (Plugin::PodTopologySpread, 500),
        (Plugin::InterPodAffinity, 2),
        (Plugin::NodeResourcesBalancedAllocation, 1),
    ];
    assert_eq!(changed, expected.into());
    let one = weights(json!({
        "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality"}]},
    }));
    assert_eq!(one, [(Plugin::ImageLocality, 1)].into());
}

/// Checks C7.
#[test]
fn a_profile_without_preemption_only_refuses() {
    let nodes = [node("a").has("cpu", "1")];
    let placed = [pod("low").cpu("1").priority(1).on("a")];
    let snapshot = world(&nodes, &placed, &[pod("high").cpu("1").priority(2)]);
    for point in ["postFilter", "multiPoint"] {
        let settings = json!([{"plugins": {point: {"disabled": [{"name": "DefaultPreemption"}]}}}]);
        let profiles = parsed(settings).expect("they are valid");
        let steps = plan(&snapshot, &profiles).steps;
        let [step] = &steps[..] else {
            panic!("one step: {steps:?}")
        };
        let Action::MarkUnschedulable { message, .. } = &step.action else {
            panic!("unexpected: {step:?}")
        };
        assert_eq!(message, "0/1 nodes are available: 1 Insufficient cpu.");
    }
    assert_eq!(plan(&snapshot, &Profiles::default()).steps.len(), 2);
}

fn in_zone(zone: &str) -> NodeSelectorTerm {
    NodeSelectorTerm {
        match_expressions: vec![NodeSelectorRequirement {
            key: "zone".into(),
            operator: "In".into(),
            values: vec![zone.into()],
        }],
        ..Default::default()
    }
}

/// Upstream's cases of `addedAffinity` in `TestNodeAffinity` and `TestNodeAffinityPriority`.
#[test]
fn the_affinity_of_a_profile_is_added_to_that_of_each_pod() {
    let zones = [node("a").labels("zone=1"), node("b").labels("zone=2")];
    let snapshot = world(&zones, &[], &[]);
    let added = |when: &str, terms: serde_json::Value| {
        let affinity = json!({"addedAffinity": {when: terms}});
        profile(args("NodeAffinity", affinity))
    };
    let required = || {
        let terms = json!({"nodeSelectorTerms": [in_zone("1")]});
        added("requiredDuringSchedulingIgnoredDuringExecution", terms)
    };
    let enforced = "node(s) didn't match scheduler-enforced node affinity";
    let own = "node(s) didn't match Pod's node affinity/selector";
    let objections = |pod| objections_of(&snapshot, required(), &pod);
    assert_eq!(objections(pod("p")), ["", enforced]);
    assert_eq!(objections(pod("p").wants("zone=2")), [own, enforced]);
    let waiting = pod("p").view();
    let rejectors = || [Plugin::NodeAffinity].into_iter().collect();
    let change = |old: Option<&NodeB>, new: &NodeB| ClusterEvent::Node {
        old: old.map(|old| Arc::new(old.view())),
        new: Some(Arc::new(new.view())),
    };
    let [first, second] = &zones;
    for (old, new, helped) in [
        (Some(second), first, true),
        (None, first, true),
        (None, second, false),
        (Some(first), second, false),
    ] {
        let found = helps(&required(), &waiting, rejectors(), &change(old, new));
        assert_eq!(found, helped, "{old:?} {new:?}");
    }
    let preferred = PreferredSchedulingTerm {
        weight: 3,
        preference: in_zone("2"),
    };
    let preferring = Profile {
        weights: [(Plugin::NodeAffinity, 1)].into(),
        ..added(
            "preferredDuringSchedulingIgnoredDuringExecution",
            json!([preferred]),
        )
    };
    let found = |pod| scores(world(&zones, &[], &[]), preferring.clone(), &pod);
    assert_eq!(found(pod("p")), [0, 100]);
    assert_eq!(found(pod("p").prefers(1, "zone=1")), [33, 100]);
}

#[test]
fn the_affinity_of_a_profile_may_compare_numbers_and_name_nodes() {
    let added = |term: serde_json::Value| {
        let terms = json!({"nodeSelectorTerms": [term]});
        let affinity =
            json!({"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
        profile(args("NodeAffinity", affinity))
    };
    let nodes = [node("a").labels("cores=4"), node("b").labels("cores=16")];
    let snapshot = world(&nodes, &[], &[]);
    let enforced = "node(s) didn't match scheduler-enforced node affinity";
    let one = |key: &str, operator: &str, value: &str| json!({"key": key, "operator": operator, "values": [value]});
    for (term, expected) in [
        (
            json!({"matchExpressions": [one("cores", "Gt", "8")]}),
            [enforced, ""],
        ),
        (
            json!({"matchExpressions": [one("cores", "Lt", "8")]}),
            ["", enforced],
        ),
        (
            json!({"matchFields": [one("metadata.name", "In", "a")]}),
            ["", enforced],
        ),
    ] {
        assert_eq!(objections_of(&snapshot, added(term), &pod("p")), expected);
    }
}

fn hosts() -> Vec<NodeB> {
    ["a", "b"]
        .map(|name| node(name).labels(&format!("{HOSTNAME}={name}")))
        .into()
}

fn spread_by(action: &str) -> Profile {
    let constraint = json!({"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": action});
    profile(args(
        "PodTopologySpread",
        json!({"defaultConstraints": [constraint], "defaultingType": "List"}),
    ))
}

#[test]
fn the_default_constraints_of_a_profile_spread_pods_without_any() {
    let owned = |name: &str| pod(name).owned("ReplicaSet", "rs").labels("app=web");
    let placed = [owned("1").on("a"), owned("2").on("a"), owned("3").on("b")];
    let snapshot = world(&hosts(), &placed, &[]);
    let objections = |pod| objections_of(&snapshot, spread_by("DoNotSchedule"), &pod);
    let spread = "node(s) didn't match pod topology spread constraints";
    assert_eq!(objections(owned("p")), [spread, ""]);
    assert_eq!(objections(pod("p")), ["", ""], "nobody owns it");
    let own = owned("p").spread(5, HOSTNAME, "app=web");
    assert_eq!(objections(own), ["", ""], "its own constraint applies");
    let scoring = Profile {
        weights: only(Plugin::PodTopologySpread).weights,
        ..spread_by("ScheduleAnyway")
    };
    let found = scores(world(&hosts(), &placed, &[]), scoring.clone(), &owned("p"));
    assert_eq!(found, [33, 100]);
    let mut nodes = hosts();
    nodes.push(node("c"));
    let found = scores(world(&nodes, &placed, &[]), scoring, &owned("p"));
    assert_eq!(found, [33, 100, 0], "a node without the label is ignored");
}

/// Checks C6.
#[test]
fn a_change_wakes_a_pod_that_default_constraints_have_rejected() {
    let waiting = pod("p").owned("ReplicaSet", "rs").view();
    let rejectors = [Plugin::PodTopologySpread].into_iter().collect();
    let helped = |change| helps(&spread_by("DoNotSchedule"), &waiting, rejectors, &change);
    let left = |namespace: &str| {
        ClusterEvent::left(Arc::new(pod("1").namespace(namespace).on("a").view()))
    };
    assert!(helped(left("default")));
    assert!(!helped(left("other")));
    let new = |node: NodeB| ClusterEvent::Node {
        old: None,
        new: Some(Arc::new(NodeView::of(node.0))),
    };
    assert!(helped(new(hosts().remove(0))));
    assert!(!helped(new(node("c"))), "it has no host name");
    let own = pod("p").spread(1, "zone", "foo").view();
    let zoned = new(node("c").labels("zone=c"));
    let hard = spread_by("DoNotSchedule");
    assert!(helps(&hard, &own, rejectors, &zoned), "its own applies");
}

/// Upstream's cases of `TestValidateKubeSchedulerConfiguration` and those of each plugin's arguments, in its words.
#[test]
fn settings_that_are_wrong_are_refused_with_their_path() {
    let strategy = |strategy| args("NodeResourcesFit", json!({"scoringStrategy": strategy}));
    let ratio = |shape| {
        strategy(json!({
            "type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape},
        }))
    };
    let spread = |constraint| {
        args(
            "PodTopologySpread",
            json!({"defaultConstraints": [constraint], "defaultingType": "List"}),
        )
    };
    let affinity = |requirement| {
        let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [requirement]}]});
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": terms});
        args("NodeAffinity", json!({"addedAffinity": required}))
    };
    let score = |enabled| json!({"plugins": {"score": {"enabled": enabled}}});
    let requirement =
        "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]";
    let cases = [
        (json!({"schedulerName": ""}), ".schedulerName: Required value".to_owned()),
        (
            score(json!([{"name": "Foo"}])),
            ".plugins.score.enabled[0]: Invalid value: \"Foo\": plugin does not exist".to_owned(),
        ),
        (
            score(json!([{"name": "NodePorts"}])),
            ".plugins.score.enabled[0]: Invalid value: \"NodePorts\": plugin does not extend Score plugin".to_owned(),
        ),
        (
            score(json!([{"name": "ImageLocality"}, {"name": "ImageLocality"}])),
            ".plugins.score.enabled[1]: Duplicate value: \"ImageLocality\"".to_owned(),
        ),
        (
            score(json!([{"name": "ImageLocality", "weight": -1}])),
            ".plugins.score.enabled[0].weight: Invalid value: -1: must not be negative".to_owned(),
        ),
        (
            json!({"plugins": {"filter": {"disabled": [{"name": "ImageLocality"}]}}}),
            ".plugins.filter.disabled[0]: Invalid value: \"ImageLocality\": plugin does not extend Filter plugin".to_owned(),
        ),
        (
            strategy(json!({"resources": [{"name": "cpu", "weight": 0}]})),
            ".pluginConfig[0].args.scoringStrategy.resources[0].weight: Invalid value: 0: resource weight of cpu not in valid range (0, 100]".to_owned(),
        ),
        (
            strategy(json!({"resources": [{"name": "cpu"}, {"name": "memory", "weight": 101}]})),
            ".pluginConfig[0].args.scoringStrategy.resources[1].weight: Invalid value: 101: resource weight of memory not in valid range (0, 100]".to_owned(),
        ),
        (
            strategy(json!({"type": "RequestedToCapacityRatio"})),
            ".pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio".to_owned(),
        ),
        (
            strategy(json!({"requestedToCapacityRatio": {"shape": []}})),
            ".pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio".to_owned(),
        ),
        (
            ratio(json!([])),
            ".pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified".to_owned(),
        ),
        (
            ratio(json!([{"utilization": 5, "score": 1}, {"utilization": 5, "score": 2}])),
            ".pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 5: values must be sorted in increasing order".to_owned(),
        ),
        (
            ratio(json!([{"utilization": 101, "score": 1}])),
            ".pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape[0].utilization: Invalid value: 101: not in valid range [0, 100]".to_owned(),
        ),
        (
            ratio(json!([{"utilization": 1, "score": 11}])),
            ".pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, 10]".to_owned(),
        ),
        (
            args("InterPodAffinity", json!({"hardPodAffinityWeight": 101})),
            ".pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]".to_owned(),
        ),
        (
            json!({"pluginConfig": [
                {"name": "InterPodAffinity", "args": {}}, {"name": "InterPodAffinity", "args": {}},
            ]}),
            ".pluginConfig[1]: Duplicate value: \"InterPodAffinity\"".to_owned(),
        ),
        (
            args("PodTopologySpread", json!({"defaultConstraints": [{"maxSkew": 1}]})),
            ".pluginConfig[0].args.defaultingType: Invalid value: \"System\": when .defaultConstraints are not empty".to_owned(),
        ),
        (
            spread(json!({"maxSkew": 0})),
            ".pluginConfig[0].args.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)".to_owned(),
        ),
        (
            spread(json!({"maxSkew": 1})),
            ".pluginConfig[0].args.defaultConstraints[0].topologyKey: Required value: can not be empty".to_owned(),
        ),
        (
            spread(json!({"maxSkew": 1, "topologyKey": "zone"})),
            ".pluginConfig[0].args.defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty".to_owned(),
        ),
        (
            spread(json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "Never"})),
            ".pluginConfig[0].args.defaultConstraints[0].whenUnsatisfiable: Unsupported value: \"Never\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\"".to_owned(),
        ),
        (
            spread(json!({
                "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {},
            })),
            ".pluginConfig[0].args.defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod".to_owned(),
        ),
        (
            affinity(json!({"key": "zone", "operator": "Near"})),
            format!(".pluginConfig[0].args.addedAffinity.{requirement}.operator: Invalid value: \"Near\": not a valid selector operator"),
        ),
        (
            affinity(json!({"key": "zone", "operator": "In"})),
            format!(".pluginConfig[0].args.addedAffinity.{requirement}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'"),
        ),
        (
            affinity(json!({"key": "zone", "operator": "Exists", "values": ["a"]})),
            format!(".pluginConfig[0].args.addedAffinity.{requirement}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
        ),
        (
            affinity(json!({"key": "zone", "operator": "Gt", "values": ["a"]})),
            format!(".pluginConfig[0].args.addedAffinity.{requirement}.values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"),
        ),
    ];
    for (settings, message) in cases {
        let error = parsed(json!([settings])).expect_err("it is wrong");
        assert_eq!(error, format!("profiles[0]{message}"), "{settings}");
    }
    let error = parsed(json!([{}, {"schedulerName": "default-scheduler"}])).expect_err("twice");
    assert_eq!(
        error,
        "profiles[1].schedulerName: Duplicate value: \"default-scheduler\""
    );
    assert_eq!(
        parsed(json!([])).expect_err("none"),
        "profiles: Required value"
    );
    let error = parsed(json!([args("Foo", json!({}))])).expect_err("unknown");
    assert!(error.starts_with("unknown variant `Foo`"), "{error}");
    let error = parsed(json!([{"percentageOfNodesToScore": 5}])).expect_err("unknown");
    assert!(
        error.starts_with("unknown field `percentageOfNodesToScore`"),
        "{error}"
    );
}
