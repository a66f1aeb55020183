//! Random actions of users, nodes and faults: invariants hold at every step, and the cluster converges.

use std::collections::BTreeMap;

use proptest::prelude::*;
use setpoint_proto::meta::IntOrString;
use setpoint_statefulset_controller::{Action, Strategy as Update, World, plan, status};

use crate::decisions::cluster::{Cluster, UID};

/// What happens between two reconciles.
#[derive(Clone, Debug)]
enum Happening {
    Scale(i32),
    Image(u8),
    Partition(Option<i32>),
    MaxUnavailable(Option<i32>),
    OnDelete,
    Start(i32),
    Retain(bool, bool),
    MinReady(i32),
    Delete(u8),
    Fail(u8),
    Unready(u8),
    Ready(u8),
    Ended(u8),
    Orphan(u8),
    Unlabel(u8),
    DeleteClaim(u8),
    CollectGarbage,
    Time,
    /// The cache of the controller receives all changes.
    Sync,
    /// The controller ends after this many actions; the next one starts with new caches.
    Crash(usize),
    Reconcile,
}

use Happening::*;

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        1 => (0..5).prop_map(Scale),
        2 => (0..3_u8).prop_map(Image),
        1 => prop::option::of(0..4).prop_map(Partition),
        1 => prop::option::of(1..4).prop_map(MaxUnavailable),
        1 => Just(OnDelete),
        1 => (0..3).prop_map(Start),
        1 => any::<(bool, bool)>().prop_map(|(deleted, scaled)| Retain(deleted, scaled)),
        1 => (0..20).prop_map(MinReady),
        2 => any::<u8>().prop_map(Delete),
        1 => any::<u8>().prop_map(Fail),
        2 => any::<u8>().prop_map(Unready),
        8 => any::<u8>().prop_map(Ready),
        6 => any::<u8>().prop_map(Ended),
        1 => any::<u8>().prop_map(Orphan),
        1 => any::<u8>().prop_map(Unlabel),
        1 => any::<u8>().prop_map(DeleteClaim),
        3 => Just(CollectGarbage),
        2 => Just(Time),
        4 => Just(Sync),
        2 => (0..3_usize).prop_map(Crash),
        16 => Just(Reconcile),
    ]
}

/// The cluster, and the state that the controller's cache shows. It shows the controller's own writes, since the
/// barrier waits for them; others may be missing.
struct Simulation {
    cluster: Cluster,
    cache: Cluster,
}

impl Simulation {
    fn happen(&mut self, happening: &Happening) {
        let cluster = &mut self.cluster;
        let pods: Vec<_> = cluster.pods.keys().cloned().collect();
        let pod = |index: &u8| pods.get(usize::from(*index) % pods.len().max(1));
        let spec = &mut cluster.set.spec;
        match happening {
            Scale(replicas) => spec.replicas = Some(*replicas),
            Image(image) => cluster.image(&image.to_string()),
            Partition(partition) => {
                cluster.set.spec.update_strategy.r#type = "RollingUpdate".into();
                match partition {
                    Some(partition) => cluster.partition(*partition),
                    None => cluster.set.spec.update_strategy.rolling_update = None,
                }
            }
            MaxUnavailable(max) => {
                cluster.set.spec.update_strategy.r#type = "RollingUpdate".into();
                cluster.rolling().max_unavailable = max.map(IntOrString::int);
            }
            OnDelete => {
                spec.update_strategy.r#type = "OnDelete".into();
                spec.update_strategy.rolling_update = None;
            }
            Start(start) => spec.ordinals.get_or_insert_default().start = *start,
            Retain(deleted, scaled) => {
                let policy = |delete| if delete { "Delete" } else { "Retain" };
                cluster.retain(policy(*deleted), policy(*scaled));
            }
            MinReady(seconds) => spec.min_ready_seconds = *seconds,
            Delete(index) => pod(index)
                .into_iter()
                .for_each(|pod| cluster.terminate(pod)),
            Fail(index) => pod(index).into_iter().for_each(|pod| cluster.fail(pod)),
            Unready(index) => pod(index).into_iter().for_each(|pod| cluster.unready(pod)),
            Ready(index) => {
                let pod = pod(index).filter(|pod| cluster.pods[*pod].status.phase != "Failed");
                pod.into_iter().for_each(|pod| cluster.ready(pod));
            }
            Ended(index) => {
                if let Some(pod) = pod(index)
                    && cluster.pods[pod].metadata.deletion_timestamp.is_some()
                {
                    cluster.pods.remove(pod);
                }
            }
            Orphan(index) => {
                if let Some(pod) = pod(index) {
                    cluster.change(pod).metadata.owner_references.clear();
                }
            }
            Unlabel(index) => {
                if let Some(pod) = pod(index) {
                    let labels = &mut cluster.change(pod).metadata.labels;
                    labels.remove("statefulset.kubernetes.io/pod-name");
                }
            }
            DeleteClaim(index) => {
                let claims: Vec<_> = cluster.claims.keys().cloned().collect();
                let claim = claims.get(usize::from(*index) % claims.len().max(1));
                if let Some(claim) = claim.and_then(|claim| cluster.claims.get_mut(claim)) {
                    claim.metadata.deletion_timestamp = Some(Default::default());
                }
            }
            CollectGarbage => cluster.collect_garbage(),
            Time => cluster.now += 7,
            Sync => self.cache = cluster.clone(),
            Crash(steps) => {
                self.reconcile(*steps);
                self.cache = self.cluster.clone();
            }
            Reconcile => self.reconcile(usize::MAX),
        }
    }

    /// Reconciles what the cache shows, with at most this many actions.
    fn reconcile(&mut self, actions: usize) {
        self.cache.now = self.cluster.now;
        let world = self.cache.world();
        let planned = plan(&world);
        check(&world, planned.steps.iter().map(|step| &step.action));
        let mut outcome = setpoint_controller::Outcome::of(planned.clone());
        for step in planned.steps.iter().take(actions) {
            match self.cluster.apply(&world, &step.action) {
                Ok(()) => outcome.done += 1,
                Err(error) => outcome.failed = Some(error),
            }
            self.assert_consistent();
        }
        // The gateway rejects a status for an older version of the set.
        let is_current = self.cache.set.spec == self.cluster.set.spec;
        if actions == usize::MAX
            && is_current
            && let Some(status) = status(&world, &outcome)
        {
            self.cluster.set.status = status;
        }
        if outcome.done > 0 || outcome.failed.is_some() {
            self.cache = self.cluster.clone();
        }
    }

    /// Asserts what no state of the cluster may violate, whatever the cache shows.
    fn assert_consistent(&self) {
        for (name, pod) in &self.cluster.pods {
            let revision = &pod.metadata.labels["controller-revision-hash"];
            assert!(
                self.cluster.revisions.contains_key(revision),
                "the revision of {name} is gone"
            );
            let claim = format!("data-{name}");
            let volumes = &pod.spec.volumes;
            let source = volumes[0].volume_source.persistent_volume_claim.as_ref();
            assert_eq!(source.unwrap().claim_name, claim);
        }
        let owned = self.cluster.revisions.values();
        let owned = owned.filter(|it| it.metadata.owner_references[0].uid == UID);
        let mut numbers = BTreeMap::new();
        for revision in owned {
            let twin = numbers.insert(revision.revision, &revision.metadata.name);
            assert_eq!(twin, None, "two revisions have one number");
        }
    }
}

/// Asserts what every plan keeps, given the state that it was made for.
fn check<'a>(world: &World, actions: impl Iterator<Item = &'a Action> + Clone) {
    let (set, pods) = (&world.set, world.members());
    let available = |ordinal: &i64| pods.get(ordinal).is_some_and(|pod| world.is_available(pod));
    let mut written = Vec::new();
    let mut disrupted = 0;
    for action in actions {
        match action {
            Action::Create {
                name,
                ordinal,
                revision,
            } => {
                assert_eq!(*name, format!("web-{ordinal}"));
                assert!(set.ordinals.contains(ordinal) && !pods.contains_key(ordinal));
                let mut before = set.ordinals.start..*ordinal;
                assert!(set.parallel || before.all(|it| available(&it)), "{name}");
                assert!(world.history().get(revision).is_some());
                assert!(world.claims.contains_key(&format!("data-{name}")));
                written.push(name.clone());
            }
            Action::Delete(pod) => {
                let ordinal = set.ordinal(&pod.key.name).unwrap();
                let seen = pods[&ordinal];
                assert!(!seen.meta.deleting, "deleted twice");
                if set.ordinals.contains(&ordinal) && !seen.phase.has_ended() {
                    let Update::Rolling { partition, .. } = set.strategy else {
                        panic!("OnDelete deletes no Pod");
                    };
                    assert!(ordinal >= set.ordinals.start + partition.unwrap_or(0));
                    disrupted += usize::from(available(&ordinal));
                }
                written.push(pod.key.name.clone());
            }
            _ => {}
        }
    }
    let writes = written.len();
    written.sort();
    written.dedup();
    assert_eq!(written.len(), writes, "two writes to a Pod");
    if disrupted > 0 {
        let unavailable = set.ordinals.clone().filter(|it| !available(it)).count();
        match set.strategy {
            Update::Rolling {
                max_unavailable: Some(max),
                ..
            } => assert!(unavailable + disrupted <= max),
            _ => assert_eq!(disrupted, 1),
        }
    }
}

/// Asserts that a cluster at rest is what its spec asks for.
fn assert_converged(cluster: &Cluster) {
    let spec = &cluster.set.spec;
    let (replicas, start) = (
        spec.replicas.unwrap(),
        spec.ordinals.map_or(0, |it| it.start),
    );
    let mut wanted: Vec<_> = (start..start + replicas)
        .map(|it| format!("web-{it}"))
        .collect();
    wanted.sort();
    assert_eq!(cluster.names(), wanted);
    let partition = match &spec.update_strategy.rolling_update {
        Some(rolling) => rolling.partition.unwrap_or(0),
        None if spec.update_strategy.r#type == "OnDelete" => replicas,
        None => 0,
    };
    let image = &spec.template.spec.containers[0].image;
    for ordinal in start.saturating_add(partition)..start + replicas {
        assert_eq!(cluster.image_of(&format!("web-{ordinal}")), image);
    }
    let status = &cluster.set.status;
    let counts = [
        status.replicas,
        status.ready_replicas,
        status.available_replicas,
    ];
    assert_eq!(counts, [replicas; 3]);
    assert_eq!(status.observed_generation, cluster.set.metadata.generation);
}

proptest! {
    #[test]
    fn whatever_happens_invariants_hold_and_the_cluster_converges(
        parallel in any::<bool>(),
        happenings in prop::collection::vec(happening(), 0..120),
    ) {
        let mut cluster = Cluster::new(3).with_claims();
        if parallel {
            cluster = cluster.parallel();
        }
        let mut simulation = Simulation { cache: cluster.clone(), cluster };
        for happening in &happenings {
            simulation.happen(happening);
        }
        let mut cluster = simulation.cluster;
        cluster.settle();
        assert_converged(&cluster);
    }
}
