//! The history: linear, complete, and the same for all readers.

use std::sync::Arc;

use crate::{Batch, Error, Range, Store, Write, keys};
use futures::{StreamExt as _, TryStreamExt as _};
use setpoint_model::Revision;
use setpoint_proto::Cause;

use super::{create, delete, key, update, value};
use crate::contract::Subject;
use crate::contract::objects::without_identity;
use crate::contract::soon;

/// Creates, updates and deletes entries; returns the revisions in order.
async fn some_history(store: &Arc<dyn Store>, name: &str) -> Vec<Revision> {
    let mut revisions = Vec::new();
    for round in 0..10 {
        let name = format!("{name}-{round}");
        let created = create(store, &name, "1").await.unwrap();
        let updated = update(store, &name, created, "2").await.unwrap();
        revisions.extend([created, updated]);
        if round % 2 == 0 {
            revisions.push(delete(store, &name, updated).await.unwrap());
        }
    }
    revisions
}

async fn batches(store: &Arc<dyn Store>, after: Revision, count: usize) -> Vec<Batch> {
    let batches = store.watch(after).take(count).try_collect();
    soon("changes", batches).await.unwrap()
}

fn revisions(batches: &[Batch]) -> Vec<Revision> {
    batches.iter().map(|batch| batch.revision).collect()
}

/// Checks S11.
pub async fn pages_of_one_revision_do_not_see_later_writes(subject: impl Subject) {
    let store = subject.store();
    for name in ["a", "b", "c", "d", "e"] {
        create(&store, name, "1").await.unwrap();
    }
    let range = Range {
        limit: 2,
        ..Range::all(keys::ROOT)
    };
    let mut page = store.list(range.clone()).await.unwrap();
    let (at, mut names) = (page.revision, Vec::new());
    assert_eq!(page.remaining, 3);
    create(&store, "ab", "1").await.unwrap();
    let e = store.get(&key("e")).await.unwrap().unwrap();
    delete(&store, "e", e.revision).await.unwrap();
    loop {
        names.extend(page.entries.iter().map(|entry| entry.key.clone()));
        if page.remaining == 0 {
            break;
        }
        let next = Range {
            after: names.last().cloned(),
            at: Some(at),
            ..range.clone()
        };
        page = store.list(next).await.unwrap();
        assert_eq!(page.revision, at);
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"].map(key));
}

/// Checks S8.
pub async fn a_list_of_keys_has_the_keys_and_revisions_of_a_full_list(subject: impl Subject) {
    let store = subject.store();
    let written = some_history(&store, "web").await;
    create(&store, "a", "1").await.unwrap();
    for at in [None, Some(written[9])] {
        let whole = Range {
            limit: 1,
            at,
            ..Range::all(keys::ROOT)
        };
        let keys = Range {
            keys_only: true,
            ..whole.clone()
        };
        let mut whole = store.list(whole).await.unwrap();
        assert!(!whole.entries.is_empty());
        for entry in &mut whole.entries {
            entry.value.clear();
        }
        assert_eq!(store.list(keys).await.unwrap(), whole);
    }
}

/// Checks S1, S2, S3.
pub async fn every_revision_arrives_once_and_in_order(subject: impl Subject) {
    let store = subject.store();
    let start = store.revision().await.unwrap();
    let live = store.watch(start);
    let written = some_history(&store, "web").await;
    let live: Vec<_> = soon("changes", live.take(written.len()).try_collect())
        .await
        .unwrap();
    assert_eq!(revisions(&live), written);
    assert!(live.iter().all(|batch| batch.changes.len() == 1));
    assert_eq!(batches(&store, start, written.len()).await, live);
}

/// Checks S1, S2, S3.
pub async fn a_watch_resumes_after_any_revision(subject: impl Subject) {
    let store = subject.store();
    let start = store.revision().await.unwrap();
    let written = some_history(&store, "web").await;
    let whole = batches(&store, start, written.len()).await;
    for ended in 0..written.len() - 1 {
        let rest = batches(&store, written[ended], written.len() - ended - 1).await;
        assert_eq!(rest, whole[ended + 1..]);
    }
}

/// Checks S2.
pub async fn a_watch_from_before_the_compacted_revision_expires(subject: impl Subject) {
    let store = subject.store();
    let start = store.revision().await.unwrap();
    let written = some_history(&store, "web").await;
    subject.compact(written[9]).await;
    let exact = batches(&store, written[8], 1).await;
    assert_eq!(revisions(&exact), [written[9]]);
    for before in [start, written[7]] {
        let mut watch = store.watch(before);
        assert_eq!(
            soon("the end", watch.next()).await,
            Some(Err(Error::Expired))
        );
        assert_eq!(soon("the end", watch.next()).await, None);
    }
}

/// Checks S2.
pub async fn a_list_at_a_revision_outside_of_the_history_expires(subject: impl Subject) {
    let store = subject.store();
    let written = some_history(&store, "web").await;
    subject.compact(written[9]).await;
    let at = |revision| {
        store.list(Range {
            at: Some(revision),
            ..Range::all(keys::ROOT)
        })
    };
    assert_eq!(at(written[8]).await, Err(Error::Expired));
    assert_eq!(at(written[9]).await.unwrap().revision, written[9]);
    let future = Revision::from_raw(1_000_000);
    assert_eq!(at(future).await, Err(Error::Expired));
}

/// Checks S2, S11.
pub async fn an_entry_is_readable_at_old_revisions_until_they_are_compacted(subject: impl Subject) {
    let store = subject.store();
    let before = store.revision().await.unwrap();
    let created = create(&store, "web", "1").await.unwrap();
    create(&store, "web-2", "1").await.unwrap();
    let updated = update(&store, "web", created, "2").await.unwrap();
    let deleted = delete(&store, "web", updated).await.unwrap();
    let web = key("web");
    let written = async |at| {
        let entry = store.get_at(&web, at).await.unwrap();
        entry.map(|entry| (entry.revision, without_identity(&entry.value)))
    };
    assert_eq!(written(before).await, None);
    assert_eq!(written(created).await, Some((created, value("1"))));
    let between = Revision::from_raw(updated.raw() - 1);
    assert_eq!(written(between).await, Some((created, value("1"))));
    assert_eq!(written(updated).await, Some((updated, value("2"))));
    assert_eq!(written(deleted).await, None);

    subject.compact(updated).await;
    assert_eq!(written(updated).await, Some((updated, value("2"))));
    assert_eq!(store.get_at(&web, between).await, Err(Error::Expired));
    let future = Revision::from_raw(1_000_000);
    assert_eq!(store.get_at(&web, future).await, Err(Error::Expired));
}

/// A deletion has no envelope to hold its cause.
pub async fn a_watch_reports_the_cause_of_a_deletion(subject: impl Subject) {
    let store = subject.store();
    let cause = Cause {
        writer: "kubectl".into(),
        ..Default::default()
    };
    let created = create(&store, "web", "1").await.unwrap();
    let delete = Write::delete(key("web"), created).because(cause.clone());
    let deleted = store.commit(delete).await.unwrap();
    let batch = batches(&store, created, 1).await.remove(0);
    assert_eq!(batch.revision, deleted);
    let [change] = batch.changes.as_slice() else {
        panic!("{batch:?}")
    };
    assert_eq!(
        (change.key.as_str(), &change.value),
        (key("web").as_str(), &None)
    );
    assert_eq!(change.cause, Some(cause));
}
