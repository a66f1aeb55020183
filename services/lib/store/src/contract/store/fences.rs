//! Fences and terms: a write under a lease commits only during its term.

use std::sync::Arc;

use crate::{Error, Fence, Store, Term, Write, keys};
use setpoint_model::Revision;

use super::{create, key, value};
use crate::contract::Subject;

fn fence(term: u64) -> Fence {
    Fence {
        namespace: "setpoint-system".into(),
        lease: "scheduler".into(),
        term,
    }
}

async fn begin(
    store: &Arc<dyn Store>,
    lease: &str,
    from: Option<u64>,
    to: u64,
) -> Result<Revision, Error> {
    let write = Write::create(key(lease), value("lease"));
    store.commit(write.advancing(term(from, Some(to)))).await
}

fn term(from: Option<u64>, to: Option<u64>) -> Option<Term> {
    let Fence {
        namespace, lease, ..
    } = fence(0);
    Some(Term {
        namespace,
        lease,
        from,
        to,
    })
}

async fn write(store: &Arc<dyn Store>, name: &str, term: u64) -> Result<Revision, Error> {
    let write = Write::create(key(name), value("1"));
    store.commit(write.fenced(Some(fence(term)))).await
}

/// Checks L5.
pub async fn a_fenced_write_commits_only_during_its_term(subject: impl Subject) {
    let store = subject.store();
    assert_eq!(write(&store, "too-early", 1).await, Err(Error::Fenced));
    begin(&store, "first", None, 1).await.unwrap();
    write(&store, "in-time", 1).await.unwrap();
    begin(&store, "second", Some(1), 2).await.unwrap();
    assert_eq!(write(&store, "too-late", 1).await, Err(Error::Fenced));
    assert_eq!(store.get(&key("too-late")).await, Ok(None));
    write(&store, "in-time-again", 2).await.unwrap();
}

/// Checks L5.
pub async fn a_term_begins_only_if_the_current_term_is_as_expected(subject: impl Subject) {
    let store = subject.store();
    begin(&store, "first", None, 1).await.unwrap();
    let moved = |current| Err(Error::TermMoved { current });
    assert_eq!(begin(&store, "second", None, 1).await, moved(Some(1)));
    assert_eq!(begin(&store, "second", Some(7), 8).await, moved(Some(1)));
    assert_eq!(store.get(&key("second")).await, Ok(None));
    let kept = store.get(&keys::fence(&fence(1))).await.unwrap().unwrap();
    assert_eq!(Term::read(&kept.value), Some(1));
}

/// Checks L5.
pub async fn a_removed_term_leaves_no_key_and_fences_its_writes(subject: impl Subject) {
    let store = subject.store();
    let made = begin(&store, "lease", None, 1).await.unwrap();
    let end = |from| Write::delete(key("lease"), made).advancing(term(from, None));
    let current = Some(1);
    let moved = Err(Error::TermMoved { current });
    assert_eq!(store.commit(end(Some(0))).await, moved);
    store.commit(end(current)).await.unwrap();
    assert_eq!(store.get(&keys::fence(&fence(1))).await, Ok(None));
    assert_eq!(write(&store, "too-late", 1).await, Err(Error::Fenced));
    begin(&store, "lease", None, 2).await.unwrap();
    assert_eq!(write(&store, "too-late", 1).await, Err(Error::Fenced));
}

/// Checks L5.
pub async fn a_fenced_write_of_a_stale_object_is_a_conflict(subject: impl Subject) {
    let store = subject.store();
    begin(&store, "first", None, 1).await.unwrap();
    create(&store, "web", "1").await.unwrap();
    let answer = write(&store, "web", 1).await;
    assert!(
        matches!(answer, Err(Error::Conflict { current: Some(_) })),
        "{answer:?}"
    );
}
