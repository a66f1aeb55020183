//! Runs the collector over a cluster in memory until it has nothing to do.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use setpoint_garbage_collector_controller::{Follower, Graph, Item, OwnerState, World, plan};
use setpoint_model::Meta;

use crate::owner_graph::cluster::{Cluster, FOREGROUND, HELD, ORPHAN, config_map, reference};

/// A number of objects in which each may own each.
const OBJECTS: usize = 6;
/// The number of reconciles after which the collector does not converge.
const MANY: usize = 2_000;

/// A collector of one term: its graph and its queue.
struct Leader {
    graph: Arc<Mutex<Graph>>,
    follower: Follower,
    queue: VecDeque<Arc<str>>,
    /// The number of events that it has seen.
    seen: usize,
}

impl Leader {
    fn start(cluster: &Cluster) -> Self {
        let graph = Arc::<Mutex<Graph>>::default();
        let mut leader = Self {
            follower: Follower::new(graph.clone()),
            graph,
            queue: VecDeque::new(),
            seen: cluster.events.len(),
        };
        leader.follower.begin();
        for event in cluster.initial() {
            let woken = leader.follower.apply(event).unwrap();
            leader.queue.extend(woken.into_iter().map(|(uid, _)| uid));
        }
        leader
    }

    /// Takes all events, or the next one only.
    fn follow(&mut self, cluster: &Cluster, all: bool) {
        let number = if all { usize::MAX } else { 1 };
        for event in cluster.events.iter().skip(self.seen).take(number) {
            self.seen += 1;
            let woken = self.follower.apply(event.clone()).unwrap();
            self.queue.extend(woken.into_iter().map(|(uid, _)| uid));
        }
    }

    fn observe(&self, cluster: &Cluster, uid: &str) -> Option<World> {
        let graph = self.graph.lock();
        graph.reference(uid)?;
        let standing = graph.standing(uid);
        Some(World {
            meta: Meta::default(),
            kind: Default::default(),
            live: cluster.live(uid, standing.is_blocked),
            standing,
            foreign: Vec::new(),
        })
    }
}

/// Runs a leader until there is nothing to do. After each of these numbers of writes it crashes, and another one
/// begins. `lags` says for each reconcile whether it has seen only one event more.
fn run(cluster: &mut Cluster, leader: &mut Leader, crashes: &[usize], lags: &[bool]) {
    let mut crashes = crashes.iter();
    let mut left = crashes.next().copied();
    for round in 0..MANY {
        let lag = lags.get(round).copied().unwrap_or_default();
        leader.follow(cluster, !lag);
        let Some(uid) = leader.queue.pop_front() else {
            if leader.seen == cluster.events.len() {
                return;
            }
            continue;
        };
        let Some(world) = leader.observe(cluster, &uid) else {
            continue;
        };
        let planned = plan(&world);
        let mut again = planned.again.is_some();
        for step in &planned.steps {
            again |= !cluster.act(&step.action);
            left = left.map(|left| left.saturating_sub(1));
            if left == Some(0) {
                left = crashes.next().copied();
                *leader = Leader::start(cluster);
                again = false;
                break;
            }
        }
        if again {
            leader.queue.push_back(uid);
        }
    }
    panic!("the collector does not converge");
}

/// Checks the state in which the collector has nothing to do.
fn check(cluster: &Cluster) {
    for item in cluster.objects.values() {
        let owners = cluster.owners_of(item);
        let none = owners.iter().all(|owner| owner.state == OwnerState::Solid);
        assert!(item.deleting || none, "{item:?} has {owners:?}");
        assert!(!item.has_finalizer(ORPHAN), "{item:?} is not orphaned");
        let blocking = |one: &&Item| one.blocks(&item.uid);
        if item.has_finalizer(FOREGROUND) && item.finalizers.len() == 1 {
            let mut blocking = cluster.objects.values().filter(blocking);
            assert!(
                blocking.any(|one| one.deleting),
                "{item:?} waits for nothing"
            );
        }
        let began =
            cluster.deleted.contains_key(&item.uid) || cluster.collected.contains(&item.uid);
        assert_eq!(item.deleting, began, "{item:?}");
    }
    let mut leader = Leader::start(cluster);
    leader
        .queue
        .extend(cluster.objects.keys().map(|uid| uid.as_str().into()));
    for uid in leader.queue.clone() {
        let world = leader.observe(cluster, &uid).unwrap();
        let planned = plan(&world);
        assert!(planned.is_empty(), "{planned:?}");
    }
}

/// The owners of an object by number, whether each reference blocks, and whether a finalizer of others holds it.
type Object = (BTreeMap<usize, bool>, bool);

fn object() -> impl Strategy<Value = Object> {
    // One more than there are: an owner that does not exist.
    let owners = prop::collection::btree_map(0..=OBJECTS, any::<bool>(), 0..3);
    (owners, prop::bool::weighted(0.1))
}

fn policy() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["Background", "Foreground", "Orphan"])
}

fn uid(number: usize) -> String {
    format!("object-{number}")
}

fn cluster(objects: &[Object]) -> Cluster {
    let mut cluster = Cluster::default();
    for (number, (owners, is_held)) in objects.iter().enumerate() {
        let owners = owners
            .iter()
            .map(|(owner, blocks)| reference(&uid(*owner), *blocks));
        let mut item = config_map(&uid(number), owners.collect());
        item.finalizers.extend(is_held.then(|| HELD.to_owned()));
        cluster.put(item);
    }
    cluster
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Checks G1, K2, K3: objects without owners go, those with an owner stay, cycles end, orphans are never collected;
    /// whatever fails, and however far the graph lags.
    #[test]
    fn the_collector_converges_without_harm_although_its_leaders_crash_and_lag(
        objects in prop::collection::vec(object(), 1..=OBJECTS),
        deletions in prop::collection::vec((0..OBJECTS, policy()), 0..4),
        crashes in prop::collection::vec(1..6_usize, 0..6),
        lags in prop::collection::vec(any::<bool>(), 0..60),
    ) {
        let mut cluster = cluster(&objects);
        for (number, policy) in &deletions {
            cluster.delete(&uid(*number), policy);
        }
        let mut leader = Leader::start(&cluster);
        run(&mut cluster, &mut leader, &crashes, &lags);
        check(&cluster);
    }

    /// As above, but the leader follows while users delete.
    #[test]
    fn the_collector_converges_after_each_of_several_deletions(
        objects in prop::collection::vec(object(), 1..=OBJECTS),
        deletions in prop::collection::vec((0..OBJECTS, policy()), 0..4),
        lags in prop::collection::vec(any::<bool>(), 0..60),
    ) {
        let mut cluster = cluster(&objects);
        let mut leader = Leader::start(&cluster);
        run(&mut cluster, &mut leader, &[], &[]);
        for (number, policy) in &deletions {
            cluster.delete(&uid(*number), policy);
            run(&mut cluster, &mut leader, &[], &lags);
            check(&cluster);
        }
    }
}
