//! Writes: conditional, atomic and durable.

use crate::{Entry, Error, Expect, Form, Precondition, Write};
use futures::future::join_all;
use futures::{FutureExt as _, StreamExt as _};
use setpoint_model::Revision;

use super::{create, delete, key, update, value};
use crate::contract::Subject;
use crate::contract::objects::without_identity;
use crate::contract::soon;

/// Returns the refusal of a write, with the current entry as it was given to the store.
fn conflict(name: &str, text: &str, revision: Revision) -> Result<Revision, Error> {
    let current = Entry {
        key: key(name),
        value: value(text),
        revision,
        form: Form::default(),
    };
    Err(Error::Conflict {
        current: Some(current),
    })
}

/// Returns an answer without the identity of the current entry.
fn plain(answer: Result<Revision, Error>) -> Result<Revision, Error> {
    answer.map_err(|error| match error {
        Error::Conflict {
            current: Some(current),
        } => Error::Conflict {
            current: Some(Entry {
                value: without_identity(&current.value),
                ..current
            }),
        },
        other => other,
    })
}

/// Checks S11.
pub async fn a_create_commits_only_if_the_key_is_absent(subject: impl Subject) {
    let store = subject.store();
    let first = create(&store, "web", "1").await.unwrap();
    assert_eq!(
        plain(create(&store, "web", "2").await),
        conflict("web", "1", first)
    );
    let gone = delete(&store, "web", first).await.unwrap();
    let again = create(&store, "web", "3").await.unwrap();
    assert!(first < gone && gone < again);
}

/// Checks S11.
pub async fn an_update_commits_only_at_the_revision_that_it_names(subject: impl Subject) {
    let store = subject.store();
    let first = create(&store, "web", "1").await.unwrap();
    let second = update(&store, "web", first, "2").await.unwrap();
    assert_eq!(
        plain(update(&store, "web", first, "3").await),
        conflict("web", "2", second)
    );
    let absent = update(&store, "other", first, "3").await;
    assert_eq!(absent, Err(Error::Conflict { current: None }));
}

/// Checks S11.
pub async fn a_delete_commits_only_at_the_revision_that_it_names(subject: impl Subject) {
    let store = subject.store();
    let first = create(&store, "web", "1").await.unwrap();
    let second = update(&store, "web", first, "2").await.unwrap();
    assert_eq!(
        plain(delete(&store, "web", first).await),
        conflict("web", "2", second)
    );
    delete(&store, "web", second).await.unwrap();
    assert_eq!(
        delete(&store, "web", second).await,
        Err(Error::Conflict { current: None })
    );
}

/// Checks S11.
pub async fn one_of_many_concurrent_updates_commits(subject: impl Subject) {
    let store = subject.store();
    let first = create(&store, "web", "1").await.unwrap();
    let texts: Vec<_> = (0..100).map(|writer| writer.to_string()).collect();
    let writes = join_all(texts.iter().map(|text| update(&store, "web", first, text))).await;
    let won: Vec<_> = writes.iter().flatten().collect();
    assert_eq!(won.len(), 1);
    assert_eq!(
        store.get(&key("web")).await.unwrap().unwrap().revision,
        *won[0]
    );
}

/// A client that disconnects must not cancel a write that was begun.
pub async fn a_write_is_committed_even_if_its_caller_is_dropped(subject: impl Subject) {
    let store = subject.store();
    let mut changes = store.watch(store.revision().await.unwrap());
    // Polled once, then dropped.
    let begun = create(&store, "web", "1").now_or_never();
    let batch = soon(begun, futures::StreamExt::next(&mut changes))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(batch.changes[0].key, key("web"));
}

/// Checks S7.
pub async fn an_acknowledged_write_is_visible_to_every_reader(subject: impl Subject) {
    let (mine, other) = (subject.store(), subject.store());
    for round in 0..20 {
        let name = format!("web-{round}");
        let written = mine
            .commit(Write::create(key(&name), value("1")))
            .await
            .unwrap();
        assert!(other.revision().await.unwrap() >= written);
        assert_eq!(
            other.get(&key(&name)).await.unwrap().unwrap().revision,
            written
        );
    }
}

/// Watchers see both values of the transaction at once.
pub async fn a_value_written_with_a_precondition_is_in_the_same_batch(subject: impl Subject) {
    let store = subject.store();
    let before = store.revision().await.unwrap();
    let also = Precondition {
        key: key("also"),
        expect: Expect::Absent,
        put: Some(value("2")),
    };
    let write = Write::create(key("written"), value("1"));
    let written = store
        .commit(write.with_preconditions([also]))
        .await
        .unwrap();
    let mut batches = store.watch(before);
    let batch = soon("the batch", batches.next()).await.unwrap().unwrap();
    assert_eq!(batch.revision, written);
    let changes = batch.changes.into_iter();
    let mut changes: Vec<_> = changes.map(|change| (change.key, change.value)).collect();
    changes.sort();
    assert_eq!(changes[0], (key("also"), Some(value("2"))));
    let (name, text) = &changes[1];
    let text = text.as_ref().map(without_identity);
    assert_eq!((name, text), (&key("written"), Some(value("1"))));
    assert_eq!(changes.len(), 2);
}

/// Concurrent writes of different objects conflict if they depend on the same key and one of them writes it.
pub async fn a_write_commits_only_while_its_preconditions_hold(subject: impl Subject) {
    let store = subject.store();
    let seen = |expect, touch: bool| Precondition {
        key: key("precondition"),
        expect,
        put: touch.then(|| value("seen")),
    };
    let commit = async |name: &str, precondition: Precondition| {
        let write = Write::create(key(name), value("1"));
        store.commit(write.with_preconditions([precondition])).await
    };
    let touched = commit("first", seen(Expect::Absent, true)).await.unwrap();
    let late = commit("second", seen(Expect::Absent, true)).await;
    assert_eq!(late, Err(Error::PreconditionFailed));
    assert_eq!(store.get(&key("second")).await, Ok(None));
    let precondition = store.get(&key("precondition")).await.unwrap().unwrap();
    assert_eq!(
        (precondition.revision, precondition.value),
        (touched, value("seen"))
    );

    let at = Expect::At(touched);
    commit("second", seen(at, false)).await.unwrap();
    commit("third", seen(at, true)).await.unwrap();
    let late = commit("fourth", seen(at, false)).await;
    assert_eq!(late, Err(Error::PreconditionFailed));
}
