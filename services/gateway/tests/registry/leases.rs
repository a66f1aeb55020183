//! Terms of leases, and writes that carry one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use setpoint_gateway::registry::{ObjectResponse, RequestContext};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::meta::DeleteOptions;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::contract::objects::{NAMESPACE, config_map};
use setpoint_store::{Fence, Range, Store as _, Write};

use crate::world::{World, target};

fn lease(holder: &str) -> Lease {
    let mut lease = Lease::default();
    lease.metadata.name = "scheduler".into();
    lease.spec.holder_identity = Some(holder.into());
    lease
}

fn under(term: u64) -> RequestContext {
    RequestContext {
        fence: Some(Fence {
            namespace: NAMESPACE.into(),
            lease: "scheduler".into(),
            term,
        }),
        ..Default::default()
    }
}

fn term_of(response: &ObjectResponse) -> u64 {
    response.cause.as_ref().unwrap().lease_term.unwrap()
}

/// Creates the Lease; returns its term, as the writer is told it.
async fn take(world: &World, lease: &Lease) -> Result<u64, ApiError> {
    let (context, target) = (RequestContext::default(), target::<Lease>("", ""));
    let object = Box::new(lease.clone());
    let response = world.registry.create(&context, &target, object).await;
    response.map(|response| term_of(&response))
}

/// The same with a Lease that is there.
async fn take_over(world: &World, lease: &Lease) -> Result<u64, ApiError> {
    let context = RequestContext::default();
    let name = &lease.metadata.name;
    let target = target::<Lease>(name, "");
    let mut lease = lease.clone();
    lease.metadata.resource_version = world.get::<Lease>(name).await?.metadata.resource_version;
    let response = world.registry.update(&context, &target, Box::new(lease));
    response.await.map(|response| term_of(&response))
}

async fn remove(world: &World, lease: &str) {
    let options = DeleteOptions::default();
    world.delete::<Lease>(lease, options).await.unwrap();
}

async fn is_fenced(world: &World, term: u64) -> bool {
    let (context, map) = (under(term).dry(true), config_map("any", "1"));
    match world.create_as(&context, &map).await {
        Err(error) => error.is_fenced(),
        Ok(_) => false,
    }
}

/// Checks L4: the term is looked at with every write, not only when its work began.
#[tokio::test]
async fn a_write_commits_only_while_its_term_stands() {
    let world = World::start().await;
    let first = take(&world, &lease("a")).await.unwrap();
    let old = under(first);
    world
        .create_as(&old, &config_map("one", "1"))
        .await
        .unwrap();

    let second = take_over(&world, &lease("b")).await.unwrap();
    assert_eq!(second, first + 1);
    for name in ["one", "two"] {
        let error = world
            .create_as(&old, &config_map(name, "1"))
            .await
            .unwrap_err();
        assert!(
            error.is_fenced() || error.reason == Reason::AlreadyExists,
            "{error:?}"
        );
    }
    let object = Box::new(config_map("one", "2"));
    let updated = world
        .registry
        .update(&old, &target::<ConfigMap>("one", ""), object)
        .await;
    assert!(updated.unwrap_err().is_fenced());
    let options = DeleteOptions::default();
    let deleted = world
        .registry
        .delete(&old, &target::<ConfigMap>("one", ""), &options)
        .await;
    assert!(deleted.err().unwrap().is_fenced());

    let new = under(second);
    world
        .create_as(&new, &config_map("two", "1"))
        .await
        .unwrap();
}

/// Checks K1: users may write there what they like, and get back what they wrote.
#[tokio::test]
async fn lease_transitions_belong_to_users() {
    let world = World::start().await;
    for written in [Some(0), None, Some(7)] {
        let mut sent = lease("a");
        sent.spec.lease_transitions = written;
        let kept = world.create(&sent).await.unwrap();
        assert_eq!(kept.spec.lease_transitions, written);
        sent.spec.holder_identity = Some("b".into());
        sent.spec.lease_transitions = Some(2);
        let kept = world.replace(&sent).await.unwrap();
        assert_eq!(kept.spec, sent.spec);
        assert!(kept.metadata.annotations.is_empty());
        remove(&world, "scheduler").await;
    }
}

/// Checks K1.
#[tokio::test]
async fn a_holder_that_stays_keeps_its_term_and_cannot_move_it() {
    let world = World::start().await;
    let first = take(&world, &lease("a")).await.unwrap();
    let mut renewed = lease("a");
    renewed.spec.lease_transitions = Some(40);
    renewed.spec.lease_duration_seconds = Some(15);
    assert_eq!(take_over(&world, &renewed).await, Ok(first));
    assert!(!is_fenced(&world, first).await);
    assert!(is_fenced(&world, 40).await);
}

#[tokio::test]
async fn a_released_lease_begins_a_new_term_with_its_next_holder() {
    let world = World::start().await;
    let first = take(&world, &lease("a")).await.unwrap();
    assert_eq!(take_over(&world, &lease("")).await, Ok(first));
    assert_eq!(take_over(&world, &lease("a")).await, Ok(first + 1));
}

#[tokio::test]
async fn a_lease_made_anew_begins_a_term_that_nobody_has_had() {
    let world = World::start().await;
    let first = take(&world, &lease("a")).await.unwrap();
    remove(&world, "scheduler").await;
    let second = take(&world, &lease("b")).await.unwrap();
    assert!(second > first);
    assert!(is_fenced(&world, first).await);
}

/// Puts something into a key, or removes it, as somebody who edits etcd would.
async fn edit(world: &World, key: &str, value: Option<&'static str>) {
    let stands = world.store.get(key).await.unwrap();
    let write = match (stands, value) {
        (Some(stands), Some(value)) => Write::update(key, stands.revision, value.into()),
        (Some(stands), None) => Write::delete(key, stands.revision),
        (None, value) => Write::create(key, value.unwrap_or_default().into()),
    };
    world.store.commit(write).await.unwrap();
}

const TERM: &str = "/setpoint/terms/production/scheduler";

/// Checks F23.
#[tokio::test]
async fn a_term_key_that_cannot_be_read_is_repaired_by_the_next_holder() {
    let world = World::start().await;
    let first = take(&world, &lease("a")).await.unwrap();
    edit(&world, TERM, Some("rubbish")).await;
    assert!(is_fenced(&world, first).await);
    let second = take_over(&world, &lease("b")).await.unwrap();
    assert!(second > first);
    assert!(!is_fenced(&world, second).await);

    edit(&world, TERM, Some("rubbish")).await;
    remove(&world, "scheduler").await;
    assert!(is_fenced(&world, second).await);
    let third = take(&world, &lease("c")).await.unwrap();
    assert!(third > second);
    assert!(!is_fenced(&world, third).await);
}

/// Checks F23: what the Lease itself remembers keeps terms from coming back.
#[tokio::test]
async fn terms_do_not_come_back_when_their_keys_are_removed() {
    let world = World::start().await;
    let mut last = take(&world, &lease("a")).await.unwrap();
    for (turn, holder) in ["b", "c", "d", "e"].into_iter().enumerate() {
        let next = match turn % 2 {
            0 => {
                edit(&world, TERM, None).await;
                take_over(&world, &lease(holder)).await.unwrap()
            }
            _ => {
                edit(&world, TERM, None).await;
                remove(&world, "scheduler").await;
                take(&world, &lease(holder)).await.unwrap()
            }
        };
        assert!(next > last, "{next} after {last}");
        assert!(is_fenced(&world, last).await);
        last = next;
    }
}

/// Checks F38: who is deposed learns of it from any request that would write.
#[tokio::test]
async fn a_dry_run_and_a_change_that_changes_nothing_are_fenced_too() {
    let world = World::start().await;
    let map = world.create(&config_map("one", "1")).await.unwrap();
    let first = take(&world, &lease("a")).await.unwrap();
    let same = |term| {
        let (world, map) = (&world, Box::new(map.clone()));
        async move {
            let target = target::<ConfigMap>("one", "");
            world.registry.update(&under(term), &target, map).await
        }
    };
    assert!(same(first).await.is_ok());
    take_over(&world, &lease("b")).await.unwrap();
    assert!(same(first).await.unwrap_err().is_fenced());

    let dry = under(first).dry(true);
    let created = world.create_as(&dry, &config_map("two", "1")).await;
    assert!(created.unwrap_err().is_fenced());
    let target = target::<ConfigMap>("one", "");
    let other = Box::new(config_map("one", "2"));
    let updated = world.registry.update(&dry, &target, other).await;
    assert!(updated.unwrap_err().is_fenced());
    let options = DeleteOptions::default();
    let deleted = world.registry.delete(&dry, &target, &options).await;
    assert!(deleted.err().unwrap().is_fenced());
}

/// Checks F16: names that clients make up are no labels.
#[tokio::test]
async fn only_leases_that_were_held_are_counted_by_name() {
    let world = World::start().await;
    let first = take(&world, &lease("a")).await.unwrap();
    take_over(&world, &lease("b")).await.unwrap();
    let mut made_up = under(first);
    made_up.fence.as_mut().unwrap().lease = "made-up-by-a-client".into();
    for context in [under(first), made_up] {
        let fenced = world.create_as(&context, &config_map("one", "1")).await;
        assert!(fenced.unwrap_err().is_fenced());
    }
    let counted = prometheus::gather();
    let counted = counted
        .iter()
        .find(|one| one.name() == "setpoint_fenced_writes_total");
    let counted = format!("{:?}", counted.unwrap());
    assert!(counted.contains("scheduler"), "{counted}");
    assert!(!counted.contains("made-up-by-a-client"), "{counted}");
}

/// However Leases come and go: no term of a name comes back, and of those that are gone one key is left in all.
#[tokio::test]
async fn the_terms_of_leases_that_are_gone_are_forgotten_and_never_come_back() {
    let world = World::start().await;
    let mut begun = BTreeMap::<String, BTreeSet<u64>>::new();
    let mut there = BTreeSet::new();
    for turn in 0..400_u32 {
        let name = format!("lease-{}", rand::random_range(0..4));
        let mut held = lease(&format!("holder-{turn}"));
        held.metadata.name.clone_from(&name);
        if there.contains(&name) && rand::random() {
            remove(&world, &name).await;
            there.remove(&name);
            continue;
        }
        let held = match there.insert(name.clone()) {
            true => take(&world, &held).await,
            false => take_over(&world, &held).await,
        };
        let (now, former) = (held.unwrap(), begun.entry(name).or_default());
        assert!(former.last().is_none_or(|last| *last < now));
        former.insert(now);
    }
    for name in there {
        remove(&world, &name).await;
    }
    let range = Range::all("/setpoint/");
    let left = world.store.list(range).await.unwrap().entries;
    let keys: Vec<_> = left.iter().map(|entry| &*entry.key).collect();
    assert_eq!(keys, ["/setpoint/past-term"]);
}

/// Checks L5: whenever in the making of a Lease another of its name comes and goes, each has a term of its own.
#[tokio::test(start_paused = true)]
async fn two_lives_of_a_lease_never_share_a_term() {
    let mut met = 0;
    for at in 0..50 {
        let world = World::start().await;
        let slow = world.beside().await;
        slow.store.delay(Duration::from_millis(10));
        let (one, other) = (lease("a"), lease("b"));
        let brief = async {
            tokio::time::sleep(Duration::from_millis(at)).await;
            let held = take(&world, &other).await?;
            let options = DeleteOptions::default();
            world.delete::<Lease>("scheduler", options).await?;
            Ok::<_, ApiError>(held)
        };
        let (long, brief) = tokio::join!(take(&slow, &one), brief);
        let long = long.unwrap();
        if let Ok(brief) = brief {
            assert_ne!(long, brief, "after {at} ms");
            met += 1;
        }
    }
    assert!(met > 20, "{met}");
}

#[tokio::test]
async fn only_one_of_two_takes_a_lease_over() {
    let world = World::start().await;
    let held = world.create(&lease("a")).await.unwrap();
    let takes = |holder: &str| {
        let mut lease = held.clone();
        lease.spec.holder_identity = Some(holder.into());
        lease
    };
    let (b, c) = (takes("b"), takes("c"));
    let (one, other) = tokio::join!(world.update(&b), world.update(&c));
    let errors = [one.err(), other.err()];
    let refused: Vec<_> = errors.iter().flatten().collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].reason, Reason::Conflict);
}
