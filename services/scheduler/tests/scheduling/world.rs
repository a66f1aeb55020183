//! Builders of nodes, Pods and snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Plan, View as _};
use setpoint_model::Selector;
use setpoint_proto::core::{
    Container, ContainerImage, ContainerPort, Node, NodeCondition, NodeSelectorTerm, Pod,
    PodAffinityTerm, PodCondition, PodSpec, PreferredSchedulingTerm, Taint, Toleration,
    TopologySpreadConstraint, WeightedPodAffinityTerm,
};
use setpoint_proto::meta::{LabelSelector, OwnerReference, Quantity};
use setpoint_scheduler::{
    Action, ClusterEvent, FilterReason, NodeView, Nomination, Plugin, PluginSet, PodView, Profile,
    Profiles, Snapshot,
};

/// The label of nodes with their own names.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// Nodes, the Pods on them, a Pod that waits, and what is expected.
pub type Case<Expected> = (Vec<NodeB>, Vec<PodB>, PodB, Expected);

#[derive(Clone, Debug)]
pub struct NodeB(pub Node);

/// A Ready node with 4 CPUs, 64 GiB and 110 Pods.
pub fn node(name: &str) -> NodeB {
    let mut node = Node::default();
    node.metadata.name = name.into();
    node.status.conditions.push(NodeCondition {
        r#type: "Ready".into(),
        status: "True".into(),
        ..Default::default()
    });
    NodeB(node)
        .has("cpu", "4")
        .has("memory", "64Gi")
        .has("pods", "110")
}

impl NodeB {
    pub fn has(mut self, resource: &str, amount: &str) -> Self {
        let allocatable = &mut self.0.status.allocatable;
        allocatable.insert(resource.into(), Quantity::new(amount));
        self
    }

    /// Sets labels, as in `zone=a,disk=ssd`.
    pub fn labels(mut self, labels: &str) -> Self {
        self.0.metadata.labels.extend(parse_labels(labels));
        self
    }

    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        self.0.spec.taints.push(Taint {
            key: key.into(),
            value: value.into(),
            effect: effect.into(),
            ..Default::default()
        });
        self
    }

    pub fn cordoned(mut self) -> Self {
        self.0.spec.unschedulable = true;
        self
    }

    pub fn image(mut self, name: &str, mebibytes: i64) -> Self {
        self.0.status.images.push(ContainerImage {
            names: vec![name.into()],
            size_bytes: mebibytes << 20,
        });
        self
    }

    pub fn view(&self) -> NodeView {
        NodeView::of(self.0.clone())
    }
}

#[derive(Clone, Debug)]
pub struct PodB(pub Pod);

/// A Pod in the namespace `default`.
pub fn pod(name: &str) -> PodB {
    let mut pod = Pod::default();
    pod.metadata.namespace = "default".into();
    pod.metadata.name = name.into();
    pod.metadata.uid = format!("uid-of-{name}");
    pod.status.phase = "Pending".into();
    pod.spec.scheduler_name = "default-scheduler".into();
    PodB(pod)
}

impl PodB {
    pub fn with(mut self, change: impl FnOnce(&mut PodSpec)) -> Self {
        change(&mut self.0.spec);
        self
    }

    pub fn namespace(mut self, namespace: &str) -> Self {
        self.0.metadata.namespace = namespace.into();
        self
    }

    pub fn labels(mut self, labels: &str) -> Self {
        self.0.metadata.labels.extend(parse_labels(labels));
        self
    }

    pub fn on(self, node: &str) -> Self {
        self.with(|spec| spec.node_name = node.into())
    }

    pub fn cpu(self, cpu: &str) -> Self {
        self.requests(&[("cpu", cpu)])
    }

    pub fn requests(self, requests: &[(&str, &str)]) -> Self {
        let mut container = Container::default();
        let requests = requests.iter();
        let requests = requests.map(|(name, amount)| ((*name).into(), Quantity::new(*amount)));
        container.resources.requests = requests.collect();
        self.with(|spec| spec.containers.push(container))
    }

    pub fn image(self, image: &str) -> Self {
        let container = Container {
            image: image.into(),
            ..Default::default()
        };
        self.with(|spec| spec.containers.push(container))
    }

    /// Adds a host port, as in `TCP/127.0.0.1/80`.
    pub fn port(self, port: &str) -> Self {
        let parts: Vec<_> = port.split('/').collect();
        let port = ContainerPort {
            protocol: parts[0].into(),
            host_ip: parts[1].into(),
            host_port: parts[2].parse().expect("a number"),
            ..Default::default()
        };
        let container = Container {
            ports: vec![port],
            ..Default::default()
        };
        self.with(|spec| spec.containers.push(container))
    }

    pub fn priority(self, priority: i32) -> Self {
        self.with(|spec| spec.priority = Some(priority))
    }

    pub fn started(mut self, second: i64) -> Self {
        let start = Timestamp::from_second(second).expect("a time");
        self.0.status.start_time = Some(start.into());
        self
    }

    pub fn nominated(mut self, node: &str) -> Self {
        self.0.status.nominated_node_name = node.into();
        self
    }

    pub fn deleting(mut self) -> Self {
        self.0.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
        self
    }

    pub fn preempted(mut self) -> Self {
        self.0.status.conditions.push(PodCondition {
            r#type: "DisruptionTarget".into(),
            status: "True".into(),
            reason: "PreemptionByScheduler".into(),
            ..Default::default()
        });
        self.deleting()
    }

    pub fn owned(mut self, kind: &str, uid: &str) -> Self {
        self.0.metadata.owner_references.push(OwnerReference {
            kind: kind.into(),
            uid: uid.into(),
            controller: Some(true),
            ..Default::default()
        });
        self
    }

    pub fn tolerates(self, key: &str, operator: &str, value: &str, effect: &str) -> Self {
        let toleration = Toleration {
            key: key.into(),
            operator: operator.into(),
            value: value.into(),
            effect: effect.into(),
            ..Default::default()
        };
        self.with(|spec| spec.tolerations.push(toleration))
    }

    pub fn selects(self, labels: &str) -> Self {
        self.with(|spec| spec.node_selector.extend(parse_labels(labels)))
    }

    /// Adds a term of required node affinity.
    pub fn wants(self, selector: &str) -> Self {
        let term = node_term(selector);
        self.with(|spec| {
            let affinity = spec.affinity.get_or_insert_default();
            let node = affinity.node_affinity.get_or_insert_default();
            let required = &mut node.required_during_scheduling_ignored_during_execution;
            let terms = &mut required.get_or_insert_default().node_selector_terms;
            terms.push(term);
        })
    }

    pub fn prefers(self, weight: i32, selector: &str) -> Self {
        let preference = node_term(selector);
        self.with(|spec| {
            let affinity = spec.affinity.get_or_insert_default();
            let node = affinity.node_affinity.get_or_insert_default();
            let preferred = &mut node.preferred_during_scheduling_ignored_during_execution;
            preferred.push(PreferredSchedulingTerm { weight, preference });
        })
    }

    /// Requires a Pod of the selector in the same domain.
    pub fn near(self, key: &str, selector: &str) -> Self {
        self.near_term(term(key, selector))
    }

    pub fn near_term(self, term: PodAffinityTerm) -> Self {
        self.with(|spec| {
            let affinity = spec.affinity.get_or_insert_default();
            let pods = affinity.pod_affinity.get_or_insert_default();
            let required = &mut pods.required_during_scheduling_ignored_during_execution;
            required.push(term);
        })
    }

    /// Requires no Pod of the selector in the same domain.
    pub fn away(self, key: &str, selector: &str) -> Self {
        self.away_term(term(key, selector))
    }

    pub fn away_term(self, term: PodAffinityTerm) -> Self {
        self.with(|spec| {
            let affinity = spec.affinity.get_or_insert_default();
            let pods = affinity.pod_anti_affinity.get_or_insert_default();
            let required = &mut pods.required_during_scheduling_ignored_during_execution;
            required.push(term);
        })
    }

    /// Prefers a Pod of the selector in the same domain, or none if the weight is negative.
    pub fn likes(self, weight: i32, key: &str, selector: &str) -> Self {
        self.likes_term(weight, term(key, selector))
    }

    pub fn likes_term(self, weight: i32, term: PodAffinityTerm) -> Self {
        let weighted = WeightedPodAffinityTerm {
            weight: weight.abs(),
            pod_affinity_term: term,
        };
        self.with(|spec| {
            let affinity = spec.affinity.get_or_insert_default();
            let preferred = if weight < 0 {
                let pods = affinity.pod_anti_affinity.get_or_insert_default();
                &mut pods.preferred_during_scheduling_ignored_during_execution
            } else {
                let pods = affinity.pod_affinity.get_or_insert_default();
                &mut pods.preferred_during_scheduling_ignored_during_execution
            };
            preferred.push(weighted);
        })
    }

    /// Adds a constraint with `DoNotSchedule`.
    pub fn spread(self, max_skew: i32, key: &str, selector: &str) -> Self {
        self.spread_by(max_skew, key, selector, |_| {})
    }

    pub fn spread_by(
        self,
        max_skew: i32,
        key: &str,
        selector: &str,
        change: impl FnOnce(&mut TopologySpreadConstraint),
    ) -> Self {
        let mut constraint = TopologySpreadConstraint {
            max_skew,
            topology_key: key.into(),
            when_unsatisfiable: "DoNotSchedule".into(),
            label_selector: parse_selector(selector),
            ..Default::default()
        };
        change(&mut constraint);
        self.with(|spec| spec.topology_spread_constraints.push(constraint))
    }

    /// Adds a constraint with `ScheduleAnyway`.
    pub fn spread_softly(self, max_skew: i32, key: &str, selector: &str) -> Self {
        self.spread_by(max_skew, key, selector, |constraint| {
            constraint.when_unsatisfiable = "ScheduleAnyway".into();
        })
    }

    pub fn view(&self) -> PodView {
        PodView::of(self.0.clone())
    }
}

pub fn parse_labels(labels: &str) -> BTreeMap<String, String> {
    let pairs = labels.split(',').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key.to_owned(), value.to_owned())
        })
        .collect()
}

/// Parses a selector in kubectl's syntax; `-` for none at all.
pub fn parse_selector(selector: &str) -> Option<LabelSelector> {
    let parse = |text| {
        let selector = Selector::parse(text).expect("valid");
        selector.to_label_selector().expect("valid")
    };
    (selector != "-").then(|| parse(selector))
}

pub fn term(key: &str, selector: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: key.into(),
        label_selector: parse_selector(selector),
        ..Default::default()
    }
}

/// Parses a term of node affinity: as a label selector, or `name in (a, b)` for the names of nodes.
fn node_term(selector: &str) -> NodeSelectorTerm {
    let by_name = selector.starts_with("name ");
    let selector = parse_selector(selector).expect("there is one");
    let requirements = selector.match_expressions.into_iter();
    let requirements = requirements.map(|one| (one.key, one.operator, one.values));
    let labels = selector.match_labels.into_iter();
    let labels = labels.map(|(key, value)| (key, "In".to_owned(), vec![value]));
    let all = requirements.chain(labels).map(|(key, operator, values)| {
        setpoint_proto::core::NodeSelectorRequirement {
            key: if by_name { "metadata.name".into() } else { key },
            operator,
            values,
        }
    });
    let all = all.collect();
    match by_name {
        true => NodeSelectorTerm {
            match_fields: all,
            ..Default::default()
        },
        false => NodeSelectorTerm {
            match_expressions: all,
            ..Default::default()
        },
    }
}

/// A snapshot of nodes, with Pods on them and Pods that wait.
pub fn world(nodes: &[NodeB], placed: &[PodB], pending: &[PodB]) -> Snapshot {
    let nodes = nodes.iter().map(|node| Arc::new(node.view()));
    let placed = placed.iter().map(|pod| {
        let view = pod.view();
        let node = view.node.clone().expect("it is on a node");
        (node, Arc::new(view))
    });
    let pending = pending.iter().map(|pod| Arc::new(pod.view()));
    let mut snapshot = Snapshot::new(nodes.collect(), placed, pending.collect());
    let nominated = snapshot.pending.iter();
    let nominated = nominated.filter(|pod| pod.nominated().is_some());
    snapshot.nominated = nominated.cloned().collect();
    snapshot.seed = 7;
    snapshot
}

/// The plan of the default profile.
pub fn plan(snapshot: &Snapshot) -> Plan<Action> {
    setpoint_scheduler::plan(snapshot, &Profiles::default())
}

/// The score of each node, or the reasons against it, by a profile.
pub fn verdicts_of(
    snapshot: &Snapshot,
    profile: Profile,
    pod: &PodB,
) -> Vec<Result<i64, Vec<FilterReason>>> {
    let (view, profiles) = (Arc::new(pod.view()), Profiles::from_iter([profile]));
    let pending = profiles.pending(&view).expect("it waits");
    setpoint_scheduler::verdicts(snapshot, pending)
}

/// Whether a change helps a Pod of the default profile.
pub fn helps(pod: &PodView, rejectors: PluginSet, change: &ClusterEvent) -> bool {
    setpoint_scheduler::helps(&Profile::default(), pod, rejectors, change)
}

/// The reason against each node, in the order of their names; empty if the Pod fits.
pub fn objections(snapshot: &Snapshot, pod: &PodB) -> Vec<String> {
    objections_of(snapshot, Profile::default(), pod)
}

/// The reason of a profile against each node.
pub fn objections_of(snapshot: &Snapshot, profile: Profile, pod: &PodB) -> Vec<String> {
    let verdicts = verdicts_of(snapshot, profile, pod).into_iter();
    let text = |reasons: Vec<FilterReason>| {
        let reasons: Vec<_> = reasons.iter().map(ToString::to_string).collect();
        reasons.join(", ")
    };
    verdicts
        .map(|verdict| verdict.map_or_else(text, |_| String::new()))
        .collect()
}

/// A profile in which only one plugin scores.
pub fn only(plugin: Plugin) -> Profile {
    Profile {
        weights: [(plugin, 1)].into(),
        ..Profile::default()
    }
}

/// The scores of the nodes that fit, in the order of their names.
pub fn scores(snapshot: Snapshot, profile: Profile, pod: &PodB) -> Vec<i64> {
    let verdicts = verdicts_of(&snapshot, profile, pod);
    verdicts.into_iter().filter_map(Result::ok).collect()
}

/// The plan of the default profile as text, with the reasons against nodes.
pub fn planned(snapshot: &Snapshot) -> String {
    let steps = plan(snapshot).steps.into_iter();
    let text = steps.map(|step| {
        let (action, because) = (described(&step.action), step.because);
        format!("{action} because {because}\n{}", objected(&step.action))
    });
    text.collect()
}

fn described(action: &Action) -> String {
    let pod = &action.pod().meta.key.name;
    let name = |pod: &PodView| pod.meta.key.name.clone();
    match action {
        Action::Bind { node, .. } => format!("bind {pod} to {node}"),
        Action::BindVolumes { node, choices, .. } => {
            format!("bind {} claims of {pod} on {node}", choices.len())
        }
        Action::MarkUnschedulable { nomination, .. } => {
            format!("refuse {pod}, nomination {nomination:?}")
        }
        Action::Preempt { victim, node, .. } => {
            format!("preempt {} on {node} for {pod}", name(victim))
        }
        Action::Withdraw { nominated, .. } => {
            format!("withdraw the nomination of {} for {pod}", name(nominated))
        }
    }
}

/// The message of a refusal, and the reasons against each node.
fn objected(action: &Action) -> String {
    let Action::MarkUnschedulable {
        message, against, ..
    } = action
    else {
        return String::new();
    };
    let against = against.iter().map(|(node, reasons)| {
        let reasons: Vec<_> = reasons.iter().map(|one| format!("{one:#}")).collect();
        format!("  {node}: {}\n", reasons.join(", "))
    });
    format!("  {message}\n{}", against.collect::<String>())
}

/// The Pods that the plan binds, with their nodes.
pub fn bindings(snapshot: &Snapshot) -> Vec<(String, String)> {
    let steps = plan(snapshot).steps.into_iter();
    let bound = steps.filter_map(|step| match step.action {
        Action::Bind { pod, node, .. } => Some((pod.meta.key.name.clone(), node)),
        _ => None,
    });
    bound.collect()
}

/// The message and the nominated node of the last Pod that the plan refuses.
pub fn refusal(snapshot: &Snapshot) -> (String, Nomination) {
    let steps = plan(snapshot).steps.into_iter();
    let refused = steps.filter_map(|step| match step.action {
        Action::MarkUnschedulable {
            message,
            nomination,
            ..
        } => Some((message, nomination)),
        _ => None,
    });
    refused.last().expect("a Pod is refused")
}

/// The names of the Pods that the plan preempts.
pub fn victims(snapshot: &Snapshot) -> Vec<String> {
    let steps = plan(snapshot).steps.into_iter();
    let victims = steps.filter_map(|step| match step.action {
        Action::Preempt { victim, .. } => Some(victim.meta.key.name.clone()),
        _ => None,
    });
    victims.collect()
}
