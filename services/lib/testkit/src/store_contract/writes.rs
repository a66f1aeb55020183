//! Writes are conditional, one wins, and what was acknowledged is there.

use futures::FutureExt as _;
use futures::future::join_all;
use setpoint_gateway::store::{Entry, Error, Expect, Witness, Write};
use setpoint_model::Revision;

use super::{create, delete, key, update, value};
use crate::Subject;
use crate::cases::soon;

fn conflict(name: &str, text: &str, revision: Revision) -> Error {
    let current = Entry {
        key: key(name),
        value: value(text),
        revision,
    };
    Error::Conflict {
        current: Some(current),
    }
}

/// Checks S11.
pub async fn a_create_needs_the_key_to_be_absent(subject: impl Subject) {
    let store = subject.store();
    let first = create(&store, "web", "1").await.unwrap();
    assert_eq!(
        create(&store, "web", "2").await,
        Err(conflict("web", "1", first))
    );
    let gone = delete(&store, "web", first).await.unwrap();
    let again = create(&store, "web", "3").await.unwrap();
    assert!(first < gone && gone < again);
}

/// Checks S11.
pub async fn an_update_needs_the_revision_that_it_names(subject: impl Subject) {
    let store = subject.store();
    let first = create(&store, "web", "1").await.unwrap();
    let second = update(&store, "web", first, "2").await.unwrap();
    assert_eq!(
        update(&store, "web", first, "3").await,
        Err(conflict("web", "2", second))
    );
    let absent = update(&store, "other", first, "3").await;
    assert_eq!(absent, Err(Error::Conflict { current: None }));
}

/// Checks S11.
pub async fn a_delete_needs_the_revision_that_it_names(subject: impl Subject) {
    let store = subject.store();
    let first = create(&store, "web", "1").await.unwrap();
    let second = update(&store, "web", first, "2").await.unwrap();
    assert_eq!(
        delete(&store, "web", first).await,
        Err(conflict("web", "2", second))
    );
    delete(&store, "web", second).await.unwrap();
    assert_eq!(
        delete(&store, "web", second).await,
        Err(Error::Conflict { current: None })
    );
}

/// Checks S11.
pub async fn of_many_writers_at_once_one_wins(subject: impl Subject) {
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

/// A client that hangs up must not leave a write half known.
pub async fn a_write_outlives_its_caller(subject: impl Subject) {
    let store = subject.store();
    let mut changes = store.watch(store.revision().await.unwrap());
    // Asked once, then dropped.
    let begun = create(&store, "web", "1").now_or_never();
    let batch = soon(begun, futures::StreamExt::next(&mut changes))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(batch.changes[0].key, key("web"));
}

/// Checks S7.
pub async fn an_acknowledged_write_is_read_by_everyone(subject: impl Subject) {
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

/// Of two writes that have seen the same, one commits, although they are of different objects.
pub async fn a_write_commits_only_while_its_witnesses_stand(subject: impl Subject) {
    let store = subject.store();
    let seen = |expect, touch: bool| Witness {
        key: key("witness"),
        expect,
        put: touch.then(|| value("seen")),
    };
    let commit = async |name: &str, witness: Witness| {
        let write = Write::create(key(name), value("1"));
        store.commit(write.relying([witness])).await
    };
    let touched = commit("first", seen(Expect::Absent, true)).await.unwrap();
    let late = commit("second", seen(Expect::Absent, true)).await;
    assert_eq!(late, Err(Error::Overtaken));
    assert_eq!(store.get(&key("second")).await, Ok(None));
    let witness = store.get(&key("witness")).await.unwrap().unwrap();
    assert_eq!((witness.revision, witness.value), (touched, value("seen")));

    let at = Expect::At(touched);
    commit("second", seen(at, false)).await.unwrap();
    commit("third", seen(at, true)).await.unwrap();
    let late = commit("fourth", seen(at, false)).await;
    assert_eq!(late, Err(Error::Overtaken));
}
