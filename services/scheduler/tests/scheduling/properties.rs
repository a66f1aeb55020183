//! Properties of every plan.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use proptest::prelude::*;
use setpoint_controller::Step;
use setpoint_scheduler::{Action, NodeInfo, Nomination, PodView, Profiles, Snapshot, verdicts};

use crate::world::{HOSTNAME, NodeB, PodB, bindings, node, plan, pod, world};

/// A Pod that may have any of the constraints.
fn any_pod(name: String) -> impl Strategy<Value = PodB> {
    let kind = prop_oneof![3 => Just(0u8), 1 => 1u8..7];
    (0i64..1500, -2i32..3, 0..3u8, kind).prop_map(move |(cpu, priority, app, kind)| {
        let app = format!("app={app}");
        let pod = pod(&name)
            .cpu(&format!("{cpu}m"))
            .priority(priority)
            .labels(&app);
        match kind {
            1 => pod.away("zone", &app),
            2 => pod.near("zone", &app),
            3 => pod.spread(1, "zone", &app),
            4 => pod.port("TCP/0.0.0.0/80"),
            5 => pod.away(HOSTNAME, "app=0").likes(5, "zone", &app),
            6 => pod.spread_softly(2, HOSTNAME, &app).prefers(3, "zone=z0"),
            _ => pod,
        }
    })
}

fn any_node(name: String) -> impl Strategy<Value = NodeB> {
    (0i64..4000, 0i64..6, 0..3u8, prop::bool::weighted(0.1)).prop_map(
        move |(cpu, pods, zone, cordoned)| {
            let labels = format!("zone=z{zone},{HOSTNAME}={name}");
            let node = node(&name)
                .labels(&labels)
                .has("cpu", &format!("{cpu}m"))
                .has("pods", &pods.to_string());
            if cordoned { node.cordoned() } else { node }
        },
    )
}

fn many<T: Clone + std::fmt::Debug, S: Strategy<Value = T>>(
    most: usize,
    one: impl Fn(String) -> S,
    prefix: &str,
) -> impl Strategy<Value = Vec<T>> {
    let all: Vec<_> = (0..most).map(|n| one(format!("{prefix}{n}"))).collect();
    (all, 0..=most).prop_map(|(mut all, count)| {
        all.truncate(count);
        all
    })
}

prop_compose! {
    fn any_world()(
        nodes in many(6, any_node, "n"),
        placed in many(10, any_pod, "placed"),
        on in prop::collection::vec(0usize..6, 10),
        pending in many(8, any_pod, "p"),
        seed: u64,
    ) -> (Vec<NodeB>, Vec<PodB>, Vec<PodB>, u64) {
        let on = placed.into_iter().zip(on);
        let placed = on.filter(|(_, n)| *n < nodes.len()).map(|(pod, n)| pod.on(&format!("n{n}")));
        let placed = placed.collect();
        (nodes, placed, pending, seed)
    }
}

fn snapshot((nodes, placed, pending, seed): &(Vec<NodeB>, Vec<PodB>, Vec<PodB>, u64)) -> Snapshot {
    let mut snapshot = world(nodes, placed, pending);
    snapshot.seed = *seed;
    snapshot
}

/// The cluster after the plan is carried out and the victims are gone.
fn afterwards(snapshot: &Snapshot) -> Snapshot {
    let mut placed: BTreeMap<String, (String, Arc<PodView>)> = BTreeMap::new();
    for (info, pods) in snapshot.nodes.iter().zip(&snapshot.pods) {
        for pod in pods {
            let on = (info.view.name().to_owned(), pod.clone());
            placed.insert(pod.meta.key.name.clone(), on);
        }
    }
    let pending = snapshot.pending.iter();
    let mut pending: BTreeMap<_, _> = pending
        .map(|pod| (pod.meta.key.name.clone(), pod.clone()))
        .collect();
    for step in plan(snapshot).steps {
        let name = step.action.pod().meta.key.name.clone();
        match step.action {
            Action::Bind { pod, node, .. } => {
                pending.remove(&name);
                let mut pod = PodView::clone(&pod);
                pod.wants = None;
                pod.node = Some(node.clone());
                placed.insert(name, (node, Arc::new(pod)));
            }
            Action::MarkUnschedulable {
                pod, nomination, ..
            } => {
                let mut pod = PodView::clone(&pod);
                let status = &mut pod.wants.as_mut().expect("it waits").status;
                match nomination {
                    Nomination::Keep => {}
                    Nomination::Clear => status.nominated_node_name.clear(),
                    Nomination::Node(node) => status.nominated_node_name = node,
                }
                pending.insert(name, Arc::new(pod));
            }
            Action::BindVolumes { .. } => panic!("these Pods have no claims"),
            Action::Preempt { victim, .. } => _ = placed.remove(&victim.meta.key.name),
            Action::Withdraw { nominated, .. } => {
                let mut pod = PodView::clone(&pending[&nominated.meta.key.name]);
                let status = &mut pod.wants.as_mut().expect("it waits").status;
                status.nominated_node_name.clear();
                pending.insert(nominated.meta.key.name.clone(), Arc::new(pod));
            }
        }
    }
    let nodes = snapshot.nodes.iter().map(|info| info.view.clone());
    let pending: Vec<_> = pending.into_values().collect();
    let mut after = Snapshot::new(nodes.collect(), placed.into_values(), pending);
    let nominated = after.pending.iter().filter(|pod| pod.nominated().is_some());
    after.nominated = nominated.cloned().collect();
    after.seed = snapshot.seed;
    after
}

fn fits(snapshot: &Snapshot, pod: &Arc<PodView>, node: usize) -> bool {
    let profiles = Profiles::default();
    let pending = profiles.pending(pod).expect("it waits");
    verdicts(snapshot, pending)[node].is_ok()
}

/// The nodes and the Pods on them.
fn copy(snapshot: &Snapshot) -> Snapshot {
    let nodes = snapshot.nodes.iter().map(|info| info.view.clone());
    let mut copy = Snapshot::new(nodes.collect(), [], Vec::new());
    copy.pods.clone_from(&snapshot.pods);
    copy.nodes.clone_from(&snapshot.nodes);
    copy
}

/// The nodes with other Pods on one of them.
fn with_pods(snapshot: &Snapshot, node: usize, pods: &[Arc<PodView>]) -> Snapshot {
    let mut changed = copy(snapshot);
    changed.nodes[node] = NodeInfo::new(snapshot.nodes[node].view.clone());
    pods.iter().for_each(|pod| changed.nodes[node].take(pod));
    changed.pods[node] = pods.to_vec();
    changed
}

proptest! {
    /// Checks C5 and C1: no plan takes more than a node has left, however many Pods it places.
    #[test]
    fn no_node_is_over_committed(world in any_world()) {
        let before = snapshot(&world);
        let after = afterwards(&before);
        for (info, was) in after.nodes.iter().zip(&before.nodes) {
            let has = &info.view.allocatable;
            prop_assert!(info.used.millicpu <= has.millicpu.max(was.used.millicpu));
            prop_assert!(info.pods <= info.view.max_pods.max(was.pods));
        }
    }

    /// Checks C5: each binding passes the scheduler's own filters after the bindings before it.
    #[test]
    fn each_binding_is_feasible(world in any_world()) {
        let before = snapshot(&world);
        let mut now = copy(&before);
        for step in plan(&before).steps {
            match step.action {
                Action::Bind { pod, node, .. } => {
                    let index = now.index(&node).expect("it is there");
                    prop_assert!(fits(&now, &pod, index), "{} on {node}", pod.meta.key);
                    now.nodes[index].take(&pod);
                    now.pods[index].push(pod);
                }
                Action::MarkUnschedulable { pod, nomination: Nomination::Node(node), .. } => {
                    let mut nominated = PodView::clone(&pod);
                    let wants = nominated.wants.as_mut().expect("it waits");
                    wants.status.nominated_node_name = node;
                    now.nominated.push(Arc::new(nominated));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn every_pending_pod_gets_exactly_one_verdict(world in any_world()) {
        let snapshot = snapshot(&world);
        let steps = plan(&snapshot).steps.into_iter();
        let decided = steps.filter_map(|step| match step.action {
            Action::Bind { pod, .. } | Action::MarkUnschedulable { pod, .. } => Some(pod.meta.key.clone()),
            _ => None,
        });
        let decided: Vec<_> = decided.collect();
        let distinct: HashSet<_> = decided.iter().collect();
        prop_assert_eq!(distinct.len(), decided.len());
        prop_assert_eq!(decided.len(), snapshot.pending.len());
    }

    /// A refusal is honest: no node passes the filters at that moment.
    #[test]
    fn the_first_pod_is_refused_only_if_no_node_fits(world in any_world()) {
        let snapshot = snapshot(&world);
        if let Some(step) = plan(&snapshot).steps.first()
            && let Action::MarkUnschedulable { pod, .. } = &step.action
        {
            let any = (0..snapshot.nodes.len()).any(|node| fits(&snapshot, pod, node));
            prop_assert!(!any);
        }
    }

    /// Pods that do not preempt others converge: what is left fits nowhere, and stays refused without further bindings.
    #[test]
    fn a_plan_converges(world in any_world()) {
        let mut now = snapshot(&world);
        // Each round binds a Pod, preempts one or is the last.
        for _ in 0..40 {
            let quiet = plan(&now).steps.iter().all(|step| matches!(
                &step.action,
                Action::MarkUnschedulable { nomination: Nomination::Keep | Nomination::Clear, .. }
            ));
            if quiet {
                break;
            }
            now = afterwards(&now);
        }
        prop_assert!(bindings(&now).is_empty());
        let preempts = |step: &Step<Action>| matches!(step.action, Action::Preempt { .. });
        prop_assert!(!plan(&now).steps.iter().any(preempts));
    }

    /// The order of the caches is irrelevant.
    #[test]
    fn the_order_of_the_inputs_is_irrelevant(world in any_world()) {
        let mut reversed = world.clone();
        reversed.0.reverse();
        reversed.1.reverse();
        reversed.2.reverse();
        let text = |snapshot: &Snapshot| {
            let steps = plan(snapshot).steps.into_iter();
            let steps = steps.map(|step| match step.action {
                Action::Bind { pod, node, score } => format!("{} {node} {score}", pod.meta.key),
                Action::BindVolumes { pod, node, .. } => format!("{} {node}", pod.meta.key),
                Action::MarkUnschedulable { pod, message, nomination, .. } => format!("{} {message} {nomination:?}", pod.meta.key),
                Action::Preempt { pod, victim, node } => format!("{} {} {node}", pod.meta.key, victim.meta.key),
                Action::Withdraw { pod, nominated } => format!("{} {}", pod.meta.key, nominated.meta.key),
            });
            steps.collect::<Vec<_>>()
        };
        prop_assert_eq!(text(&snapshot(&world)), text(&snapshot(&reversed)));
        prop_assert_eq!(text(&snapshot(&world)), text(&snapshot(&world)));
    }

    /// Checks C7: only Pods of lower priority are preempted, on the nominated node, each once.
    #[test]
    fn victims_are_of_lower_priority_and_on_the_nominated_node(world in any_world()) {
        let snapshot = snapshot(&world);
        let mut nominated: HashMap<String, String> = HashMap::new();
        let mut seen = HashSet::new();
        for step in plan(&snapshot).steps {
            match step.action {
                Action::MarkUnschedulable { pod, nomination: Nomination::Node(node), .. } => {
                    nominated.insert(pod.meta.key.name.clone(), node);
                }
                Action::Preempt { pod, victim, node } => {
                    prop_assert!(victim.priority < pod.priority);
                    prop_assert_eq!(victim.occupies(), Some(&*node));
                    prop_assert_eq!(nominated.get(&pod.meta.key.name), Some(&node));
                    prop_assert!(seen.insert(victim.meta.key.clone()));
                }
                _ => {}
            }
        }
    }

    /// Checks C7: the Pod fits once its victims are gone, and no victim could be spared.
    #[test]
    fn victims_are_minimal(world in any_world()) {
        let mut world = world;
        world.2.truncate(1);
        let snapshot = snapshot(&world);
        let steps = plan(&snapshot).steps;
        let victims: Vec<_> = steps.iter().filter_map(|step| match &step.action {
            Action::Preempt { victim, .. } => Some(victim.clone()),
            _ => None,
        }).collect();
        let first = steps.first().map(|step| &step.action);
        if let Some(Action::MarkUnschedulable { pod, nomination: Nomination::Node(node), .. }) = first {
            let node = snapshot.index(node).expect("it is there");
            let is_victim = |other: &Arc<PodView>| victims.iter().any(|victim| victim.meta.key == other.meta.key);
            let mut rest = snapshot.pods[node].clone();
            rest.retain(|other| !is_victim(other));
            prop_assert!(fits(&with_pods(&snapshot, node, &rest), pod, node));
            for victim in &victims {
                let mut spared = rest.clone();
                spared.push(victim.clone());
                prop_assert!(!fits(&with_pods(&snapshot, node, &spared), pod, node), "{} could stay", victim.meta.key);
            }
        }
    }
}
