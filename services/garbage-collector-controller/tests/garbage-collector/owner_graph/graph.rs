//! The graph, and the follower that builds it from events.

use std::sync::Arc;

use parking_lot::Mutex;
use setpoint_garbage_collector_controller::{Follower, Graph, Item, Standing};
use setpoint_model::{Key, Revision};
use setpoint_proto::{ApiError, Cause, Reason};

use crate::owner_graph::cluster::{FOREGROUND, ORPHAN, bookmark, config_map, event_of, reference};

fn owned(uid: &str, owners: &[&str]) -> Item {
    let owners = owners.iter().map(|owner| reference(owner, true));
    config_map(uid, owners.collect())
}

fn ending(item: Item, finalizer: &str) -> Item {
    Item {
        deleting: true,
        finalizers: vec![finalizer.into()],
        ..item
    }
}

fn sorted(uids: Vec<Arc<str>>) -> Vec<Arc<str>> {
    let mut uids = uids;
    uids.sort_unstable();
    uids
}

#[track_caller]
fn woken(uids: Vec<Arc<str>>, expected: &[&str]) {
    let uids = sorted(uids);
    assert_eq!(uids.iter().map(|uid| &**uid).collect::<Vec<_>>(), expected);
}

#[test]
fn a_deletion_wakes_the_dependants_and_the_owners_that_wait() {
    let mut graph = Graph::default();
    woken(graph.put(&owned("web", &[])), &[]);
    woken(graph.put(&ending(owned("db", &[]), FOREGROUND)), &["db"]);
    woken(graph.put(&owned("a", &["web"])), &[]);
    woken(graph.put(&owned("b", &["db", "web"])), &["b"]);
    woken(graph.remove("web"), &["a", "b"]);
    woken(graph.remove("b"), &["db"]);
    woken(graph.remove("a"), &[]);
    woken(graph.remove("db"), &[]);
    assert!(graph.is_empty());
    graph.put(&owned("web", &[]));
    assert!(!graph.is_empty());
    graph.put(&owned("a", &["missing"]));
    graph.remove("web");
    assert!(!graph.is_empty());
}

#[test]
fn an_object_is_looked_at_if_its_owner_is_not_known_or_another() {
    let mut graph = Graph::default();
    woken(graph.put(&owned("web", &[])), &[]);
    woken(graph.put(&owned("a", &["missing"])), &["a"]);
    let mut misnamed = owned("b", &["web"]);
    misnamed.owners[0].name = "db".into();
    woken(graph.put(&misnamed), &["b"]);
    let mut elsewhere = owned("c", &["web"]);
    elsewhere.key = Key::new("other", "c");
    woken(graph.put(&elsewhere), &["c"]);
    assert!(graph.is_foreign("c", "web") && !graph.is_foreign("b", "web"));
    let mut cluster_scoped = owned("d", &["web"]);
    cluster_scoped.key = Key::new("", "d");
    woken(graph.put(&cluster_scoped), &["d"]);
    assert!(graph.is_foreign("d", "web"));
    woken(graph.put(&owned("a", &["missing"])), &[]);
}

#[test]
fn an_owner_wakes_when_a_reference_stops_to_block_it_and_its_dependants_when_it_begins_to_wait() {
    let mut graph = Graph::default();
    graph.put(&owned("web", &[]));
    graph.put(&owned("a", &["web"]));
    graph.put(&owned("b", &["web"]));
    woken(
        graph.put(&ending(owned("web", &[]), FOREGROUND)),
        &["a", "b", "web"],
    );
    let mut unblocked = owned("a", &["web"]);
    unblocked.owners[0].block_owner_deletion = Some(false);
    // The object itself is looked at, too, since its owner still waits.
    woken(graph.put(&unblocked), &["a", "web"]);
    woken(graph.put(&owned("b", &[])), &["web"]);
    woken(graph.put(&ending(owned("web", &[]), ORPHAN)), &["web"]);
}

#[test]
fn only_owners_that_are_held_wake_and_only_for_references_that_blocked_them() {
    let mut graph = Graph::default();
    graph.put(&owned("living", &[]));
    graph.put(&ending(owned("held", &[]), FOREGROUND));
    graph.put(&ending(owned("orphaning", &[]), ORPHAN));
    graph.put(&ending(owned("ending", &[]), "example.com/other"));
    let all = ["living", "held", "orphaning", "ending"];
    graph.put(&owned("a", &all));
    let mut free = owned("b", &all);
    for owner in &mut free.owners {
        owner.block_owner_deletion = None;
    }
    graph.put(&free);
    woken(graph.put(&owned("b", &[])), &[]);
    woken(graph.put(&owned("a", &["held"])), &["a", "orphaning"]);
    woken(graph.remove("a"), &["held"]);
}

#[test]
fn an_object_with_a_finalizer_is_not_held_before_it_is_deleted() {
    for finalizer in [FOREGROUND, ORPHAN] {
        let mut graph = Graph::default();
        let mut web = owned("web", &[]);
        web.finalizers.push(finalizer.into());
        graph.put(&owned("web", &[]));
        graph.put(&owned("a", &["web"]));
        woken(graph.put(&web), &[]);
        woken(graph.put(&owned("b", &["web"])), &[]);
        assert_eq!(graph.suspects().count(), 0);
        graph.put(&ending(web, finalizer));
        assert!(graph.suspects().any(|uid| &**uid == "web"));
    }
}

#[test]
fn an_owner_without_a_namespace_is_that_of_objects_in_any() {
    let mut graph = Graph::default();
    let mut node = owned("node", &[]);
    node.key = Key::new("", "node");
    woken(graph.put(&node), &[]);
    woken(graph.put(&owned("a", &["node"])), &[]);
    assert!(!graph.is_foreign("a", "node"));
    assert!(!graph.is_foreign("a", "missing") && !graph.is_foreign("missing", "node"));
}

#[test]
fn the_standing_of_an_owner_follows_from_the_references_to_it() {
    let mut graph = Graph::default();
    let mut free = owned("a", &["web"]);
    free.owners[0].block_owner_deletion = None;
    graph.put(&free);
    let standing = graph.standing("web");
    assert!(standing.has_dependants && !standing.is_blocked);
    graph.put(&owned("b", &["web"]));
    assert!(graph.standing("web").is_blocked);
    assert!(!graph.standing("web").in_cycle);
    assert_eq!(graph.standing("a"), Standing::default());
    assert_eq!(graph.reference("web"), None);
    let reference = graph.reference("a").unwrap();
    assert_eq!(reference, owned("a", &[]).reference());
}

/// Checks K3.
#[test]
fn a_cycle_is_found_only_if_all_of_its_objects_wait() {
    let mut graph = Graph::default();
    graph.put(&ending(owned("a", &["c"]), FOREGROUND));
    graph.put(&ending(owned("b", &["a"]), FOREGROUND));
    graph.put(&owned("c", &["b"]));
    assert!(!graph.standing("a").in_cycle);
    graph.put(&ending(owned("c", &["b"]), FOREGROUND));
    graph.put(&ending(owned("beside", &["a"]), FOREGROUND));
    for uid in ["a", "b", "c"] {
        assert!(graph.standing(uid).in_cycle, "{uid}");
    }
    let mut unblocked = ending(owned("c", &["b"]), FOREGROUND);
    unblocked.owners[0].block_owner_deletion = Some(false);
    graph.put(&unblocked);
    assert!(!graph.standing("a").in_cycle, "an object that blocks none");
    graph.put(&ending(owned("c", &["b"]), FOREGROUND));
    assert!(!graph.standing("beside").in_cycle);
    assert!(!graph.standing("beside").has_dependants);
    assert!(graph.standing("a").is_blocked);
}

/// Checks K3.
#[test]
fn an_owner_of_objects_in_a_cycle_is_in_none_itself() {
    let mut graph = Graph::default();
    graph.put(&ending(owned("web", &[]), FOREGROUND));
    graph.put(&ending(owned("a", &["b", "web"]), FOREGROUND));
    graph.put(&ending(owned("b", &["a"]), FOREGROUND));
    assert!(!graph.standing("web").in_cycle);
    assert!(graph.standing("a").in_cycle && graph.standing("b").in_cycle);
}

fn follower() -> (Arc<Mutex<Graph>>, Follower) {
    let graph = Arc::<Mutex<Graph>>::default();
    (graph.clone(), Follower::new(graph))
}

fn at(revision: u64) -> Revision {
    Revision::from_raw(revision)
}

#[test]
fn an_interrupted_initial_state_is_read_again_and_a_complete_one_is_continued() {
    let (graph, mut follower) = follower();
    follower.begin();
    follower
        .apply(event_of(&owned("a", &["gone"]), false))
        .unwrap();
    follower.end(None);
    assert_eq!((follower.after(), graph.lock().len()), (None, 0));
    follower.begin();
    let waiting = ending(owned("web", &[]), FOREGROUND);
    for item in [owned("a", &["gone"]), owned("b", &["web"]), waiting] {
        let cause = Cause {
            writer: format!("writer of {}", item.uid),
            ..Cause::default()
        };
        let mut event = event_of(&item, false);
        event.cause = Some(cause);
        assert_eq!(follower.apply(event).unwrap(), []);
    }
    let mut looked_at = follower.apply(bookmark(at(7), true)).unwrap();
    looked_at.sort_by(|a, b| a.0.cmp(&b.0));
    let looked_at = looked_at
        .iter()
        .map(|(uid, cause)| (&**uid, &*cause.as_ref().unwrap().writer));
    assert_eq!(
        looked_at.collect::<Vec<_>>(),
        [
            ("a", "writer of a"),
            ("b", "writer of web"),
            ("web", "writer of web")
        ]
    );
    follower.apply(bookmark(at(9), false)).unwrap();
    let lost = ApiError::new(Reason::ServiceUnavailable, "going away");
    follower.end(Some(&lost));
    assert_eq!((follower.after(), graph.lock().len()), (Some(at(9)), 3));
}

#[test]
fn a_deletion_that_was_missed_is_found_in_a_new_initial_state() {
    let (graph, mut follower) = follower();
    follower.begin();
    for item in [owned("web", &[]), owned("a", &["web"])] {
        follower.apply(event_of(&item, false)).unwrap();
    }
    assert_eq!(follower.apply(bookmark(at(7), true)).unwrap(), []);
    follower.end(Some(&ApiError::new(Reason::Expired, "too old")));
    assert_eq!(follower.after(), None);
    follower.begin();
    follower
        .apply(event_of(&owned("a", &["web"]), false))
        .unwrap();
    assert_eq!(
        graph.lock().len(),
        2,
        "the former graph, until the new one is complete"
    );
    let looked_at = follower.apply(bookmark(at(9), true)).unwrap();
    assert_eq!(looked_at, [("a".into(), None)]);
    assert_eq!(graph.lock().len(), 1);
}

/// Checks F1.
#[test]
fn a_graph_of_many_objects_is_empty_again_when_all_are_gone() {
    const MANY: usize = 20_000;
    let mut graph = Graph::default();
    graph.put(&owned("web", &[]));
    for number in 0..MANY {
        graph.put(&owned(&number.to_string(), &["web", "missing"]));
    }
    assert_eq!(graph.len(), MANY + 1);
    assert_eq!(graph.remove("web").len(), MANY);
    for number in 0..MANY {
        graph.remove(&number.to_string());
    }
    assert!(graph.is_empty());
}

#[test]
fn a_new_follower_empties_its_graph() {
    let graph = Arc::<Mutex<Graph>>::default();
    graph.lock().put(&owned("web", &[]));
    let follower = Follower::new(graph.clone());
    assert_eq!((follower.after(), graph.lock().len()), (None, 0));
}

#[test]
fn an_event_before_a_watch_or_without_a_revision_changes_nothing() {
    let (graph, mut follower) = follower();
    let event = event_of(&owned("a", &["gone"]), false);
    assert_eq!(follower.apply(event.clone()).unwrap(), []);
    assert_eq!(follower.apply(bookmark(at(7), true)).unwrap(), []);
    assert_eq!((follower.after(), graph.lock().len()), (None, 0));
    follower.begin();
    assert_eq!(follower.apply(bookmark(at(7), false)).unwrap(), []);
    assert_eq!(follower.after(), None, "the initial state has not ended");
    let mut malformed = event;
    malformed.revision = "seven".into();
    let refused = follower.apply(malformed).unwrap_err();
    assert_eq!(refused.reason, Reason::InternalError);
    assert_eq!(refused.message, "the gateway sent the revision \"seven\"");
    assert_eq!(follower.apply(bookmark(at(9), true)).unwrap(), []);
    assert_eq!((follower.after(), graph.lock().len()), (Some(at(9)), 0));
}

#[test]
fn a_change_that_is_followed_wakes_objects_with_its_cause() {
    let (graph, mut follower) = follower();
    follower.begin();
    follower.apply(bookmark(at(7), true)).unwrap();
    follower.begin();
    assert_eq!(follower.after(), Some(at(7)), "the next watch continues");
    let mut web = owned("web", &[]);
    web.revision = at(8);
    follower.apply(event_of(&web, false)).unwrap();
    let mut dependant = owned("a", &["web"]);
    dependant.revision = at(9);
    follower.apply(event_of(&dependant, false)).unwrap();
    web.revision = at(10);
    let mut event = event_of(&web, true);
    event.cause = Some(Cause::default());
    let looked_at = follower.apply(event).unwrap();
    assert_eq!(looked_at, [("a".into(), Some(Cause::default()))]);
    assert_eq!((follower.after(), graph.lock().len()), (Some(at(10)), 1));
}
