//! Tests of the terms of Leases, and of fenced writes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use setpoint_gateway::registry::{ObjectResponse, RequestContext};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::meta::DeleteOptions;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::contract::objects::{NAMESPACE, config_map};
use setpoint_store::{Fence, Range, Store as _, Write, keys};

use crate::registry::gateway::{TestGateway, target};

fn lease(holder: &str) -> Lease {
    let mut lease = Lease::default();
    lease.metadata.name = "scheduler".into();
    lease.spec.holder_identity = Some(holder.into());
    lease
}

/// Returns a context with a fence.
fn fenced_by(term: u64) -> RequestContext {
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

/// Creates a Lease; returns the term in the response.
async fn create_lease(gateway: &TestGateway, lease: &Lease) -> Result<u64, ApiError> {
    let (context, target) = (RequestContext::of_server(), target::<Lease>("", ""));
    let object = Box::new(lease.clone());
    let response = gateway.registry.create(&context, &target, object).await;
    response.map(|response| term_of(&response))
}

/// Updates a Lease; returns the term in the response.
async fn update_lease(gateway: &TestGateway, lease: &Lease) -> Result<u64, ApiError> {
    let context = RequestContext::of_server();
    let name = &lease.metadata.name;
    let target = target::<Lease>(name, "");
    let mut lease = lease.clone();
    lease.metadata.resource_version = gateway.get::<Lease>(name).await?.metadata.resource_version;
    let response = gateway.registry.update(&context, &target, Box::new(lease));
    response.await.map(|response| term_of(&response))
}

async fn remove(gateway: &TestGateway, lease: &str) {
    let options = DeleteOptions::default();
    gateway.delete::<Lease>(lease, options).await.unwrap();
}

async fn is_fenced(gateway: &TestGateway, term: u64) -> bool {
    let (context, map) = (fenced_by(term).dry(true), config_map("any", "1"));
    match gateway.create_as(&context, &map).await {
        Err(error) => error.is_fenced(),
        Ok(_) => false,
    }
}

/// Checks L4: the term is checked in the transaction of every write.
#[tokio::test]
async fn a_fenced_write_commits_only_in_its_term() {
    let gateway = TestGateway::start().await;
    let first = create_lease(&gateway, &lease("a")).await.unwrap();
    let old = fenced_by(first);
    gateway
        .create_as(&old, &config_map("one", "1"))
        .await
        .unwrap();

    let second = update_lease(&gateway, &lease("b")).await.unwrap();
    assert_eq!(second, first + 1);
    for name in ["one", "two"] {
        let error = gateway
            .create_as(&old, &config_map(name, "1"))
            .await
            .unwrap_err();
        assert!(
            error.is_fenced() || error.reason == Reason::AlreadyExists,
            "{error:?}"
        );
    }
    let object = Box::new(config_map("one", "2"));
    let updated = gateway
        .registry
        .update(&old, &target::<ConfigMap>("one", ""), object)
        .await;
    assert!(updated.unwrap_err().is_fenced());
    let options = DeleteOptions::default();
    let deleted = gateway
        .registry
        .delete(&old, &target::<ConfigMap>("one", ""), &options)
        .await;
    assert!(deleted.err().unwrap().is_fenced());

    let new = fenced_by(second);
    gateway
        .create_as(&new, &config_map("two", "1"))
        .await
        .unwrap();
}

/// Checks K1: the gateway does not change the field.
#[tokio::test]
async fn lease_transitions_are_stored_as_sent() {
    let gateway = TestGateway::start().await;
    for written in [Some(0), None, Some(7)] {
        let mut sent = lease("a");
        sent.spec.lease_transitions = written;
        let kept = gateway.create(&sent).await.unwrap();
        assert_eq!(kept.spec.lease_transitions, written);
        sent.spec.holder_identity = Some("b".into());
        sent.spec.lease_transitions = Some(2);
        let kept = gateway.replace(&sent).await.unwrap();
        assert_eq!(kept.spec, sent.spec);
        assert!(kept.metadata.annotations.is_empty());
        remove(&gateway, "scheduler").await;
    }
}

/// Checks K1.
#[tokio::test]
async fn a_renewal_keeps_the_term_whatever_the_transitions_are() {
    let gateway = TestGateway::start().await;
    let first = create_lease(&gateway, &lease("a")).await.unwrap();
    let mut renewed = lease("a");
    renewed.spec.lease_transitions = Some(40);
    renewed.spec.lease_duration_seconds = Some(15);
    assert_eq!(update_lease(&gateway, &renewed).await, Ok(first));
    assert!(!is_fenced(&gateway, first).await);
    assert!(is_fenced(&gateway, 40).await);
}

#[tokio::test]
async fn the_next_holder_of_a_released_lease_begins_a_new_term() {
    let gateway = TestGateway::start().await;
    let first = create_lease(&gateway, &lease("a")).await.unwrap();
    assert_eq!(update_lease(&gateway, &lease("")).await, Ok(first));
    assert_eq!(update_lease(&gateway, &lease("a")).await, Ok(first + 1));
}

#[tokio::test]
async fn a_recreated_lease_begins_an_unused_term() {
    let gateway = TestGateway::start().await;
    let first = create_lease(&gateway, &lease("a")).await.unwrap();
    remove(&gateway, "scheduler").await;
    let second = create_lease(&gateway, &lease("b")).await.unwrap();
    assert!(second > first);
    assert!(is_fenced(&gateway, first).await);
}

/// Writes or deletes a key of the store directly.
async fn edit(gateway: &TestGateway, key: &str, value: Option<&'static str>) {
    let current = gateway.store.get(key).await.unwrap();
    let write = match (current, value) {
        (Some(current), Some(value)) => Write::update(key, current.revision, value.into()),
        (Some(current), None) => Write::delete(key, current.revision),
        (None, value) => Write::create(key, value.unwrap_or_default().into()),
    };
    gateway.store.commit(write).await.unwrap();
}

const TERM: &str = "/setpoint/terms/production/scheduler";

/// Checks F23.
#[tokio::test]
async fn an_invalid_term_key_is_repaired_by_the_next_holder() {
    let gateway = TestGateway::start().await;
    let first = create_lease(&gateway, &lease("a")).await.unwrap();
    edit(&gateway, TERM, Some("invalid")).await;
    assert!(is_fenced(&gateway, first).await);
    let second = update_lease(&gateway, &lease("b")).await.unwrap();
    assert!(second > first);
    assert!(!is_fenced(&gateway, second).await);

    edit(&gateway, TERM, Some("invalid")).await;
    remove(&gateway, "scheduler").await;
    assert!(is_fenced(&gateway, second).await);
    let third = create_lease(&gateway, &lease("c")).await.unwrap();
    assert!(third > second);
    assert!(!is_fenced(&gateway, third).await);
}

/// Checks F23: the term recorded with the Lease prevents reuse.
#[tokio::test]
async fn terms_are_not_reused_when_their_keys_are_deleted() {
    let gateway = TestGateway::start().await;
    let mut last = create_lease(&gateway, &lease("a")).await.unwrap();
    for (turn, holder) in ["b", "c", "d", "e"].into_iter().enumerate() {
        let next = match turn % 2 {
            0 => {
                edit(&gateway, TERM, None).await;
                update_lease(&gateway, &lease(holder)).await.unwrap()
            }
            _ => {
                edit(&gateway, TERM, None).await;
                remove(&gateway, "scheduler").await;
                create_lease(&gateway, &lease(holder)).await.unwrap()
            }
        };
        assert!(next > last, "{next} after {last}");
        assert!(is_fenced(&gateway, last).await);
        last = next;
    }
}

/// Checks F38: a deposed leader learns of it from any write request.
#[tokio::test]
async fn dry_runs_and_updates_without_a_change_are_fenced() {
    let gateway = TestGateway::start().await;
    let map = gateway.create(&config_map("one", "1")).await.unwrap();
    let first = create_lease(&gateway, &lease("a")).await.unwrap();
    let same = |term| {
        let (gateway, map) = (&gateway, Box::new(map.clone()));
        async move {
            let target = target::<ConfigMap>("one", "");
            gateway
                .registry
                .update(&fenced_by(term), &target, map)
                .await
        }
    };
    assert!(same(first).await.is_ok());
    update_lease(&gateway, &lease("b")).await.unwrap();
    assert!(same(first).await.unwrap_err().is_fenced());

    let dry = fenced_by(first).dry(true);
    let created = gateway.create_as(&dry, &config_map("two", "1")).await;
    assert!(created.unwrap_err().is_fenced());
    let target = target::<ConfigMap>("one", "");
    let other = Box::new(config_map("one", "2"));
    let updated = gateway.registry.update(&dry, &target, other).await;
    assert!(updated.unwrap_err().is_fenced());
    let options = DeleteOptions::default();
    let deleted = gateway.registry.delete(&dry, &target, &options).await;
    assert!(deleted.err().unwrap().is_fenced());
}

/// Checks F16: names that clients invent do not become labels.
#[tokio::test]
async fn fenced_writes_are_counted_only_for_leases_with_a_term() {
    let gateway = TestGateway::start().await;
    let first = create_lease(&gateway, &lease("a")).await.unwrap();
    update_lease(&gateway, &lease("b")).await.unwrap();
    let mut made_up = fenced_by(first);
    made_up.fence.as_mut().unwrap().lease = "made-up-by-a-client".into();
    for context in [fenced_by(first), made_up] {
        let fenced = gateway.create_as(&context, &config_map("one", "1")).await;
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

/// With Leases created and deleted at random, no term is reused, and a single key is left in the end.
#[tokio::test]
async fn deleted_leases_leave_one_key_and_their_terms_are_not_reused() {
    let gateway = TestGateway::start().await;
    let mut begun = BTreeMap::<String, BTreeSet<u64>>::new();
    let mut there = BTreeSet::new();
    for turn in 0..400_u32 {
        let name = format!("lease-{}", rand::random_range(0..4));
        let mut held = lease(&format!("holder-{turn}"));
        held.metadata.name.clone_from(&name);
        if there.contains(&name) && rand::random() {
            remove(&gateway, &name).await;
            there.remove(&name);
            continue;
        }
        let held = match there.insert(name.clone()) {
            true => create_lease(&gateway, &held).await,
            false => update_lease(&gateway, &held).await,
        };
        let (now, former) = (held.unwrap(), begun.entry(name).or_default());
        assert!(former.last().is_none_or(|last| *last < now));
        former.insert(now);
    }
    for name in there {
        remove(&gateway, &name).await;
    }
    let range = Range::all("/setpoint/");
    let left = gateway.store.list(range).await.unwrap().entries;
    let left: Vec<_> = left.iter().map(|entry| &*entry.key).collect();
    assert_eq!(left, [keys::TOMBSTONE, keys::PAST_TERM]);
}

/// Checks L5: two Leases of one name have different terms, whenever the second is created and deleted during the first
/// create.
#[tokio::test(start_paused = true)]
async fn recreated_leases_never_share_a_term() {
    let mut met = 0;
    for at in 0..50 {
        let gateway = TestGateway::start().await;
        let slow = gateway.another().await;
        slow.store.delay(Duration::from_millis(10));
        let (one, other) = (lease("a"), lease("b"));
        let brief = async {
            tokio::time::sleep(Duration::from_millis(at)).await;
            let held = create_lease(&gateway, &other).await?;
            let options = DeleteOptions::default();
            gateway.delete::<Lease>("scheduler", options).await?;
            Ok::<_, ApiError>(held)
        };
        let (long, brief) = tokio::join!(create_lease(&slow, &one), brief);
        let long = long.unwrap();
        if let Ok(brief) = brief {
            assert_ne!(long, brief, "after {at} ms");
            met += 1;
        }
    }
    assert!(met > 20, "{met}");
}

#[tokio::test]
async fn only_one_of_two_concurrent_updates_acquires_a_lease() {
    let gateway = TestGateway::start().await;
    let held = gateway.create(&lease("a")).await.unwrap();
    let takes = |holder: &str| {
        let mut lease = held.clone();
        lease.spec.holder_identity = Some(holder.into());
        lease
    };
    let (b, c) = (takes("b"), takes("c"));
    let (one, other) = tokio::join!(gateway.update(&b), gateway.update(&c));
    let errors = [one.err(), other.err()];
    let refused: Vec<_> = errors.iter().flatten().collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].reason, Reason::Conflict);
}
