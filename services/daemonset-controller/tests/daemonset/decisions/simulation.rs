//! Simulates DaemonSets under random actions of users, nodes and Pods, with caches that lag and leaders that crash.

use proptest::prelude::*;
use setpoint_controller::{Outcome, Plan};
use setpoint_daemonset_controller::{Action, Placement, World, plan, status};
use setpoint_model::{Key, placement};
use setpoint_proto::core::Pod;
use setpoint_workload::RevisionView;
use setpoint_workload::history::HASH_LABEL;

use setpoint_controller::View as _;

use crate::decisions::cluster::{Cluster, Objects};

const NODES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Debug)]
enum Event {
    AddNode(usize),
    RemoveNode(usize),
    Taint(usize, &'static str),
    SetImage(usize),
    Roll(i32, i32),
    OnDelete,
    /// A number of Pods passes that.
    Run(usize),
    Unready(usize),
    Fail(usize),
    DeletePod(usize),
    Finish(usize),
    /// The caches catch up with nodes or with Pods.
    SeeNodes,
    SeePods,
    /// A reconcile; the leader may crash after this number of steps.
    Reconcile(Option<usize>),
    Pass(i64),
}

fn event() -> impl Strategy<Value = Event> {
    let node = 0..NODES.len();
    let effect = prop::sample::select(&["", "NoSchedule", "NoExecute"][..]);
    let pod = || 0..8_usize;
    prop_oneof![
        1 => node.clone().prop_map(Event::AddNode),
        1 => node.clone().prop_map(Event::RemoveNode),
        2 => (node, effect).prop_map(|(node, effect)| Event::Taint(node, effect)),
        2 => (0..3_usize).prop_map(Event::SetImage),
        1 => prop_oneof![Just((0, 1)), Just((0, 2)), Just((1, 0)), Just((2, 0))]
            .prop_map(|(surge, unavailable)| Event::Roll(surge, unavailable)),
        1 => Just(Event::OnDelete),
        6 => pod().prop_map(Event::Run),
        2 => pod().prop_map(Event::Unready),
        2 => pod().prop_map(Event::Fail),
        1 => pod().prop_map(Event::DeletePod),
        4 => pod().prop_map(Event::Finish),
        3 => Just(Event::SeeNodes),
        3 => Just(Event::SeePods),
        8 => Just(Event::Reconcile(None)),
        2 => (0..4_usize).prop_map(|steps| Event::Reconcile(Some(steps))),
        2 => (1..20_i64).prop_map(Event::Pass),
    ]
}

/// A cluster and the caches of the controller.
struct Simulation {
    cluster: Cluster,
    seen: Objects,
}

impl Simulation {
    fn new() -> Self {
        let cluster = Cluster::new(&NODES[..3]);
        let seen = cluster.objects.clone();
        Self { cluster, seen }
    }

    fn pod(&self, n: usize) -> Option<String> {
        let pods = &self.cluster.objects.pods;
        pods.keys().nth(n % pods.len().max(1)).cloned()
    }

    fn happen(&mut self, event: &Event) {
        let cluster = &mut self.cluster;
        let named = |cluster: &Cluster, n: usize| {
            let name = NODES[n];
            cluster.objects.nodes.contains_key(name).then_some(name)
        };
        match event {
            Event::AddNode(n) if named(cluster, *n).is_none() => cluster.add_node(NODES[*n]),
            Event::RemoveNode(n) => drop(cluster.objects.nodes.remove(NODES[*n])),
            Event::Taint(n, effect) => {
                if let Some(node) = named(cluster, *n) {
                    cluster.taint(node, effect);
                }
            }
            Event::SetImage(n) => cluster.set_image(["", "two", "three"][*n]),
            Event::Roll(surge, unavailable) => cluster.roll(*surge, *unavailable),
            Event::OnDelete => {
                cluster.objects.set.spec.update_strategy.r#type = "OnDelete".into();
            }
            Event::SeeNodes => self.seen.nodes.clone_from(&cluster.objects.nodes),
            Event::SeePods => self.seen.pods.clone_from(&cluster.objects.pods),
            Event::Reconcile(crash) => self.reconcile(*crash),
            Event::Pass(seconds) => cluster.now += seconds,
            Event::Run(n)
            | Event::Unready(n)
            | Event::Fail(n)
            | Event::DeletePod(n)
            | Event::Finish(n) => {
                if let Some(name) = self.pod(*n) {
                    self.pod_event(event, &name);
                }
            }
            Event::AddNode(_) => {}
        }
    }

    fn pod_event(&mut self, event: &Event, name: &str) {
        let cluster = &mut self.cluster;
        let pod = &cluster.objects.pods[name];
        let ended = matches!(pod.status.phase.as_str(), "Failed" | "Succeeded");
        let deleting = pod.metadata.deletion_timestamp.is_some();
        match event {
            Event::Run(_) => cluster.run(name),
            Event::Unready(_) if !ended => cluster.unready(name),
            Event::Fail(_) if !ended => cluster.fail(name, "Failed"),
            Event::DeletePod(_) if !deleting => {
                let now = crate::decisions::cluster::at(cluster.now);
                cluster.change(name).metadata.deletion_timestamp = Some(now.into());
            }
            Event::Finish(_) if deleting => drop(cluster.objects.pods.remove(name)),
            _ => {}
        }
    }

    /// Reconciles what the caches show, and writes the status unless the leader crashes.
    fn reconcile(&mut self, crash: Option<usize>) {
        self.seen.set = self.cluster.objects.set.clone();
        let world = self.cluster.world_of(&self.seen);
        let plan = plan(&world);
        check_availability(&world, &plan);
        let (mut done, mut failed) = (0, None);
        for step in plan.steps.iter().take(crash.unwrap_or(usize::MAX)) {
            match self.apply(&world, &step.action) {
                Ok(()) => done += 1,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        // The next reconcile waits until the caches hold what was written.
        if done > 0 {
            self.seen.pods.clone_from(&self.cluster.objects.pods);
            self.seen
                .revisions
                .clone_from(&self.cluster.objects.revisions);
        }
        if crash.is_some() {
            // Another leader begins, once its caches have caught up, and without memory.
            self.seen = self.cluster.objects.clone();
            self.cluster.backoffs.clear();
            self.cluster.seed += 1_000;
            return;
        }
        if failed.is_none() {
            self.cluster.seed += 1_000;
        }
        let outcome = Outcome { plan, failed, done };
        if let Some(status) = status(&world, &outcome) {
            self.cluster.objects.set.status = status;
        }
    }

    fn apply(&mut self, world: &World, action: &Action) -> Result<(), setpoint_proto::ApiError> {
        let applied = self.cluster.apply(action);
        if let (Action::Create { node, .. }, Ok(())) = (action, &applied) {
            let view = world.nodes.iter().find(|view| view.name() == node).unwrap();
            assert_eq!(world.set.placement(view), Placement::Run, "{action:?}");
            let two = self.is_surge(world);
            let on_node = self.cluster.on(node);
            assert!(
                on_node.len() <= 1 + usize::from(two),
                "{action:?}: {on_node:?}"
            );
        }
        applied
    }

    fn is_surge(&self, _: &World) -> bool {
        let strategy = &self.cluster.objects.set.spec.update_strategy;
        let rolling = strategy.rolling_update.as_ref().unwrap();
        let surge = rolling.max_surge.as_ref().unwrap().int_val;
        strategy.r#type == "RollingUpdate" && surge > 0
    }

    /// Ends all disturbances, and checks what the controller then arrives at.
    fn converge(mut self) {
        self.cluster.settle();
        let cluster = &self.cluster;
        let world = cluster.world();
        let is_rolling = cluster.objects.set.spec.update_strategy.r#type == "RollingUpdate";
        let newest = RevisionView::of(cluster.newest().clone());
        for node in &world.nodes {
            let pods = cluster.on(node.name());
            match world.set.placement(node) {
                Placement::Run => assert_eq!(pods.len(), 1, "{}", node.name()),
                Placement::Stay => assert!(pods.len() <= 1, "{}", node.name()),
                Placement::Leave => assert!(pods.is_empty(), "{}", node.name()),
            }
            for pod in pods.into_iter().filter(|_| is_rolling) {
                let pod = &cluster.objects.pods[pod];
                assert_eq!(pod.metadata.labels[HASH_LABEL], newest.hash());
            }
        }
        let known = |pod: &Pod| {
            let node = placement::target_node(&pod.spec).unwrap();
            cluster.objects.nodes.contains_key(node)
        };
        assert!(cluster.objects.pods.values().all(known));
        assert_eq!(newest.data, world.set.data);
        let reported = &cluster.objects.set.status;
        assert_eq!(reported.number_available, reported.desired_number_scheduled);
        assert_eq!(reported.observed_generation, world.set.meta.generation);
    }
}

/// Checks that a plan takes no more nodes than it may from having an available Pod: as many as `maxUnavailable` in all
/// during a rolling update, none during a surge.
fn check_availability(world: &World, plan: &Plan<Action>) {
    let Ok(limit) = limit(world) else { return };
    let deleted = |key: &Key| {
        let mut steps = plan.steps.iter();
        steps.any(|step| matches!(&step.action, Action::Delete { pod, .. } if pod.key == *key))
    };
    let (mut before, mut after) = (0, 0);
    for node in &world.nodes {
        if world.set.placement(node) != Placement::Run {
            continue;
        }
        let live = || {
            let pods = world.pods.iter();
            pods.filter(|pod| pod.target_node() == Some(node.name()) && !pod.meta.deleting)
        };
        // After a change of the strategy a node may have more Pods than are left.
        if live().count() > 1 {
            return;
        }
        let available = |pod: &&std::sync::Arc<setpoint_workload::PodView>| {
            pod.ready_since.is_some() && !pod.phase.has_ended()
        };
        before += usize::from(!live().any(|pod| available(&pod)));
        after += usize::from(!live().any(|pod| available(&pod) && !deleted(&pod.meta.key)));
    }
    assert!(after <= limit.max(before), "{before} → {after}: {plan:#?}");
}

fn limit(world: &World) -> Result<usize, ()> {
    use setpoint_daemonset_controller::Strategy;
    match &world.set.strategy {
        Strategy::OnDelete => Ok(0),
        Strategy::Rolling { surge, .. } if surge.int_val > 0 => Ok(0),
        Strategy::Rolling { unavailable, .. } => {
            usize::try_from(unavailable.int_val).map_err(|_| ())
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever happens, and wherever the leader crashes, a node never has more Pods than it may, no Pod is created on
    /// a node that must not run it, `maxUnavailable` is kept, and in the end each node has its Pod.
    #[test]
    fn a_daemon_set_converges_and_keeps_its_bounds(events in prop::collection::vec(event(), 0..60)) {
        let mut simulation = Simulation::new();
        for event in &events {
            simulation.happen(event);
        }
        simulation.converge();
    }

    /// The order of the caches does not matter.
    #[test]
    fn the_plan_does_not_depend_on_the_order_of_the_caches(events in prop::collection::vec(event(), 0..40)) {
        let mut simulation = Simulation::new();
        for event in &events {
            simulation.happen(event);
        }
        let world = simulation.cluster.world();
        let mut reversed = world.clone();
        reversed.nodes.reverse();
        reversed.pods.reverse();
        reversed.revisions.reverse();
        let sorted = |world: &World| {
            let steps = plan(world).steps;
            let mut steps: Vec<_> = steps.iter().map(|step| format!("{step:?}")).collect();
            steps.sort();
            steps
        };
        prop_assert_eq!(sorted(&world), sorted(&reversed));
    }
}
