//! A write under a lease commits only while that lease's term stands.

use std::sync::Arc;

use setpoint_gateway::store::{Error, Fence, Store, Term, Write};
use setpoint_model::Revision;

use super::{create, key, value};
use crate::Subject;

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
pub async fn a_fenced_write_commits_only_while_its_term_stands(subject: impl Subject) {
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
pub async fn a_term_begins_only_after_the_one_that_stood(subject: impl Subject) {
    let store = subject.store();
    begin(&store, "first", None, 1).await.unwrap();
    let moved = |stands| Err(Error::TermMoved { stands });
    assert_eq!(begin(&store, "second", None, 1).await, moved(Some(1)));
    assert_eq!(begin(&store, "second", Some(7), 8).await, moved(Some(1)));
    assert_eq!(store.get(&key("second")).await, Ok(None));
    let kept = store.get(&fence(1).key()).await.unwrap().unwrap();
    assert_eq!(Term::read(&kept.value), Some(1));
}

/// Checks L5.
pub async fn a_term_that_is_forgotten_stands_no_more_and_leaves_nothing(subject: impl Subject) {
    let store = subject.store();
    let made = begin(&store, "lease", None, 1).await.unwrap();
    let end = |from| Write::delete(key("lease"), made).advancing(term(from, None));
    let stands = Some(1);
    let moved = Err(Error::TermMoved { stands });
    assert_eq!(store.commit(end(Some(0))).await, moved);
    store.commit(end(stands)).await.unwrap();
    assert_eq!(store.get(&fence(1).key()).await, Ok(None));
    assert_eq!(write(&store, "too-late", 1).await, Err(Error::Fenced));
    begin(&store, "lease", None, 2).await.unwrap();
    assert_eq!(write(&store, "too-late", 1).await, Err(Error::Fenced));
}

/// Checks L5.
pub async fn a_stale_object_is_a_conflict_even_within_the_term(subject: impl Subject) {
    let store = subject.store();
    begin(&store, "first", None, 1).await.unwrap();
    create(&store, "web", "1").await.unwrap();
    let answer = write(&store, "web", 1).await;
    assert!(
        matches!(answer, Err(Error::Conflict { current: Some(_) })),
        "{answer:?}"
    );
}
