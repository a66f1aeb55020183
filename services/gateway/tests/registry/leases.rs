//! Terms of leases, and writes that carry one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use setpoint_gateway::registry::Call;
use setpoint_gateway::store::{Fence, Range, Store as _};
use setpoint_proto::Reason;
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::meta::DeleteOptions;
use setpoint_testkit::objects::{NAMESPACE, config_map};

use crate::world::{World, target};

fn lease(holder: &str) -> Lease {
    let mut lease = Lease::default();
    lease.metadata.name = "scheduler".into();
    lease.spec.holder_identity = Some(holder.into());
    lease
}

fn under(term: i32) -> Call {
    Call {
        fence: Some(Fence {
            namespace: NAMESPACE.into(),
            lease: "scheduler".into(),
            term: term.try_into().unwrap(),
        }),
        ..Default::default()
    }
}

fn term(lease: &Lease) -> i32 {
    lease.spec.lease_transitions.unwrap()
}

/// Checks L4: the term is looked at with every write, not only when its work began.
#[tokio::test]
async fn a_write_commits_only_while_its_term_stands() {
    let world = World::start().await;
    let first = world.create(&lease("a")).await.unwrap();
    let old = under(term(&first));
    world
        .create_as(&old, &config_map("one", "1"))
        .await
        .unwrap();

    let second = world.replace(&lease("b")).await.unwrap();
    assert_eq!(term(&second), term(&first) + 1);
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

    let new = under(term(&second));
    world
        .create_as(&new, &config_map("two", "1"))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_holder_that_stays_keeps_its_term_and_cannot_move_it() {
    let world = World::start().await;
    let first = world.create(&lease("a")).await.unwrap();
    let mut renewed = lease("a");
    renewed.spec.lease_transitions = Some(40);
    renewed.spec.lease_duration_seconds = Some(15);
    let renewed = world.replace(&renewed).await.unwrap();
    assert_eq!(term(&renewed), term(&first));
    assert_eq!(renewed.spec.lease_duration_seconds, Some(15));
}

#[tokio::test]
async fn a_released_lease_begins_a_new_term_with_its_next_holder() {
    let world = World::start().await;
    let first = world.create(&lease("a")).await.unwrap();
    let released = world.replace(&lease("")).await.unwrap();
    assert_eq!(term(&released), term(&first));
    let next = world.replace(&lease("a")).await.unwrap();
    assert_eq!(term(&next), term(&first) + 1);
}

#[tokio::test]
async fn a_lease_made_anew_begins_a_term_that_nobody_has_had() {
    let world = World::start().await;
    let first = world.create(&lease("a")).await.unwrap();
    world
        .delete::<Lease>("scheduler", DeleteOptions::default())
        .await
        .unwrap();
    let second = world.create(&lease("b")).await.unwrap();
    assert!(term(&second) > term(&first));
    let error = world
        .create_as(&under(term(&first)), &config_map("one", "1"))
        .await
        .unwrap_err();
    assert!(error.is_fenced());
}

/// However Leases come and go: no term of a name comes back, and of those that are gone one key is left in all.
#[tokio::test]
async fn the_terms_of_leases_that_are_gone_are_forgotten_and_never_come_back() {
    let world = World::start().await;
    let mut begun = BTreeMap::<String, BTreeSet<i32>>::new();
    let mut there = BTreeSet::new();
    for turn in 0..400_u32 {
        let name = format!("lease-{}", rand::random_range(0..4));
        let mut held = lease(&format!("holder-{turn}"));
        held.metadata.name.clone_from(&name);
        if there.contains(&name) && rand::random() {
            let options = DeleteOptions::default();
            world.delete::<Lease>(&name, options).await.unwrap();
            there.remove(&name);
            continue;
        }
        let held = match there.insert(name.clone()) {
            true => world.create(&held).await,
            false => world.replace(&held).await,
        };
        let (now, former) = (term(&held.unwrap()), begun.entry(name).or_default());
        assert!(former.last().is_none_or(|last| *last < now));
        former.insert(now);
    }
    for name in there {
        let options = DeleteOptions::default();
        world.delete::<Lease>(&name, options).await.unwrap();
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
            let held = world.create(&other).await?;
            let options = DeleteOptions::default();
            world.delete::<Lease>("scheduler", options).await?;
            Ok::<_, setpoint_proto::ApiError>(held)
        };
        let (long, brief) = tokio::join!(slow.create(&one), brief);
        let long = long.unwrap();
        if let Ok(brief) = brief {
            assert_ne!(term(&long), term(&brief), "after {at} ms");
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
