//! The outcomes of writes whose answers were lost, whatever has happened to their keys since.

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use setpoint_model::Revision;

use super::{create, delete, key, update, value};
use crate::contract::{Subject, soon};
use crate::{Error, KeyChange, Store, Write, outcome};

/// Commits a write, and returns its revision and one from before.
async fn committed(store: &Arc<dyn Store>, write: &Write) -> (Revision, Revision) {
    let before = store.revision().await.unwrap();
    (store.commit(write.clone()).await.unwrap(), before)
}

async fn of_lost(
    store: &Arc<dyn Store>,
    write: &Write,
    before: Revision,
) -> Result<Revision, Error> {
    soon("the outcome", outcome::of_lost(&**store, write, before)).await
}

async fn is_a_conflict(store: &Arc<dyn Store>, write: &Write, before: Revision) -> bool {
    matches!(
        of_lost(store, write, before).await,
        Err(Error::Conflict { .. })
    )
}

/// Checks DG1.
pub async fn a_lost_create_is_found_after_any_further_changes(subject: impl Subject) {
    let store = subject.store();
    let write = Write::create(key("web"), value("1"));
    let (created, before) = committed(&store, &write).await;
    assert_eq!(of_lost(&store, &write, before).await, Ok(created));
    let updated = update(&store, "web", created, "2").await.unwrap();
    assert_eq!(of_lost(&store, &write, before).await, Ok(created));
    delete(&store, "web", updated).await.unwrap();
    assert_eq!(of_lost(&store, &write, before).await, Ok(created));
    create(&store, "web", "1").await.unwrap();
    assert_eq!(of_lost(&store, &write, before).await, Ok(created));
}

/// Checks DG1.
pub async fn a_lost_update_is_found_after_any_further_changes(subject: impl Subject) {
    let store = subject.store();
    let first = create(&store, "web", "1").await.unwrap();
    let write = Write::update(key("web"), first, value("2"));
    let (updated, before) = committed(&store, &write).await;
    let again = update(&store, "web", updated, "2").await.unwrap();
    assert_eq!(of_lost(&store, &write, before).await, Ok(updated));
    delete(&store, "web", again).await.unwrap();
    assert_eq!(of_lost(&store, &write, before).await, Ok(updated));
}

/// Checks DG1: a deletion leaves no envelope, and the object may have been created again.
pub async fn a_lost_deletion_is_found_after_the_object_was_created_again(subject: impl Subject) {
    let store = subject.store();
    let first = create(&store, "web", "1").await.unwrap();
    let write = Write::delete(key("web"), first);
    let (deleted, before) = committed(&store, &write).await;
    let other = create(&store, "other", "1").await.unwrap();
    delete(&store, "other", other).await.unwrap();
    assert_eq!(of_lost(&store, &write, before).await, Ok(deleted));
    create(&store, "web", "1").await.unwrap();
    assert_eq!(of_lost(&store, &write, before).await, Ok(deleted));
}

/// Checks DG1: the contents are those that the lost write would have written.
pub async fn a_lost_write_is_a_conflict_if_another_changed_the_key_first(subject: impl Subject) {
    let store = subject.store();
    let first = create(&store, "web", "1").await.unwrap();
    let before = store.revision().await.unwrap();
    let lost_create = Write::create(key("new"), value("1"));
    create(&store, "new", "1").await.unwrap();
    assert!(is_a_conflict(&store, &lost_create, before).await);
    let later = store.revision().await.unwrap();
    assert!(is_a_conflict(&store, &lost_create, later).await);

    let lost_update = Write::update(key("web"), first, value("2"));
    let lost_deletion = Write::delete(key("web"), first);
    let second = update(&store, "web", first, "2").await.unwrap();
    assert!(is_a_conflict(&store, &lost_update, before).await);
    assert!(is_a_conflict(&store, &lost_deletion, before).await);
    delete(&store, "web", second).await.unwrap();
    assert!(is_a_conflict(&store, &lost_update, before).await);
    assert!(is_a_conflict(&store, &lost_deletion, before).await);
}

/// Checks DG1: the write may still be on its way.
pub async fn a_lost_write_of_an_unchanged_key_has_an_unknown_outcome(subject: impl Subject) {
    let store = subject.store();
    let first = create(&store, "web", "1").await.unwrap();
    for write in [
        Write::create(key("new"), value("1")),
        Write::update(key("web"), first, value("2")),
        Write::delete(key("web"), first),
    ] {
        let outcome = of_lost(&store, &write, first).await;
        assert_eq!(outcome, Err(Error::Unknown), "{write:?}");
    }
}

/// Checks DG1.
pub async fn a_lost_write_has_an_unknown_outcome_once_its_history_is_compacted(
    subject: impl Subject,
) {
    let store = subject.store();
    let write = Write::create(key("web"), value("1"));
    let (created, before) = committed(&store, &write).await;
    let mut newest = update(&store, "web", created, "2").await.unwrap();
    for text in ["3", "4"] {
        newest = update(&store, "web", newest, text).await.unwrap();
    }
    subject.compact(newest).await;
    assert_eq!(of_lost(&store, &write, before).await, Err(Error::Unknown));
}

/// Checks DG1.
pub async fn a_commit_that_is_sent_twice_is_made_once(subject: impl Subject) {
    let store = subject.store();
    let commit = async |write: Write| {
        let first = store.commit(write.clone()).await.unwrap();
        assert_eq!(store.commit(write).await, Ok(first));
        first
    };
    let created = commit(Write::create(key("web"), value("1"))).await;
    let updated = commit(Write::update(key("web"), created, value("2"))).await;
    commit(Write::delete(key("web"), updated)).await;
}

/// Checks DG1.
pub async fn the_changes_of_one_key_arrive_in_order(subject: impl Subject) {
    let store = subject.store();
    let before = store.revision().await.unwrap();
    let mut revisions = Vec::new();
    let web = key("web");
    let live = store.watch_key(&web, before);
    revisions.push(create(&store, "web", "1").await.unwrap());
    create(&store, "web-2", "1").await.unwrap();
    revisions.push(update(&store, "web", revisions[0], "2").await.unwrap());
    revisions.push(delete(&store, "web", revisions[1]).await.unwrap());
    for watch in [live, store.watch_key(&web, before)] {
        let changes: Vec<KeyChange> = soon("changes", watch.take(3).try_collect()).await.unwrap();
        let seen: Vec<_> = changes.iter().map(|change| change.revision).collect();
        assert_eq!(seen, revisions);
        assert!(changes[0].value.is_some() && changes[2].value.is_none());
    }
    subject.compact(revisions[2]).await;
    let mut late = store.watch_key(&web, before);
    assert_eq!(
        soon("the end", late.next()).await,
        Some(Err(Error::Expired))
    );
}
