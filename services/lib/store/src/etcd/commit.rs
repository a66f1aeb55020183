//! Writes. Each is one transaction, which is completed even if the caller is dropped.
//!
//! 2026-11: we chose one transaction for each write over group commit (independent writes as nested transactions of
//! one), because with few writers and a slow disk the throughput falls by 30 to 40 %: a write waits for the batch
//! before it. Wrong if etcd's CPU is the limit: a prototype took 40 % less of it.

use std::time::Duration;

use etcd_client::{Compare, CompareOp, Txn, TxnOp, TxnOpResponse, TxnResponse};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use setpoint_model::Revision;
use setpoint_task::catch_panic;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, timeout_at};

use super::error_class::ErrorClass;
use super::read::entry;
use super::{Etcd, raw};
use crate::{Entry, Error, Expect, Term, Write, keys, outcome};

/// The time between two attempts to send a write.
const PAUSE: Duration = Duration::from_millis(50);

impl Etcd {
    /// Commits a write in a task of its own, once a permit is free.
    pub(super) async fn commit_detached(&self, write: Write) -> Result<Revision, Error> {
        let deadline = Instant::now() + self.timeout;
        let waiting = self.permits.clone().acquire_owned();
        let Ok(Ok(permit)) = timeout_at(deadline, waiting).await else {
            return Err(Error::Timeout);
        };
        detached(self.clone().transact(write, permit, deadline).boxed()).await
    }

    /// Sends a write until etcd has received it. The permit is held until the outcome is known, so that writes with
    /// an unknown outcome count towards the limit.
    async fn transact(
        mut self,
        write: Write,
        _permit: OwnedSemaphorePermit,
        deadline: Instant,
    ) -> Result<Revision, Error> {
        let sent_after = self.seen();
        loop {
            let answer = self.kv.txn(transaction(&write)).await;
            let answer = answer.map(|answer| (self.see(answer.0.header.as_ref()), answer));
            match answer.map_err(ErrorClass::from) {
                Ok((revision, answer)) if answer.succeeded() => return Ok(revision),
                Ok((_, answer)) => return refusal(&write, &answer),
                Err(ErrorClass::Final(error)) => return Err(error),
                Err(ErrorClass::Unsent(error)) if Instant::now() + PAUSE > deadline => {
                    return Err(error);
                }
                Err(ErrorClass::Unsent(_)) => sleep(PAUSE).await,
                Err(ErrorClass::Unknown(error)) => {
                    tracing::warn!(key = %write.key, %error, "the response to a write was lost; reading the history of its key");
                    return outcome::of_lost(&self, &write, sent_after).await;
                }
            }
        }
    }
}

/// Runs a write in a task of its own. After a panic its outcome is unknown. Boxed, since a task is moved several times.
async fn detached(write: BoxFuture<'static, Result<Revision, Error>>) -> Result<Revision, Error> {
    match tokio::spawn(catch_panic("etcd-commit", write)).await {
        Ok(Ok(outcome)) => outcome,
        // `catch_panic` has counted and logged a panic; otherwise the runtime is shutting down.
        Ok(Err(_)) | Err(_) => Err(Error::Unknown),
    }
}

fn transaction(write: &Write) -> Txn {
    Txn::new()
        .when(compares(write))
        .and_then(operations(write))
        .or_else(reads_on_failure(write))
}

fn compares(write: &Write) -> Vec<Compare> {
    let mut compares = vec![compare(&write.key, write.expect)];
    let preconditions = write.preconditions.iter();
    compares
        .extend(preconditions.map(|precondition| compare(&precondition.key, precondition.expect)));
    if let Some(fence) = &write.fence {
        compares.push(Compare::value(
            keys::fence(fence),
            CompareOp::Equal,
            fence.term.to_string(),
        ));
    }
    if let Some(term) = &write.term {
        compares.push(match term.from {
            Some(from) => Compare::value(term.key(), CompareOp::Equal, from.to_string()),
            None => Compare::mod_revision(term.key(), CompareOp::Equal, 0),
        });
    }
    compares
}

fn compare(key: &str, expect: Expect) -> Compare {
    let expected = match expect {
        Expect::Absent => 0,
        Expect::At(revision) => raw(revision),
    };
    Compare::mod_revision(key, CompareOp::Equal, expected)
}

fn operations(write: &Write) -> Vec<TxnOp> {
    let key = write.key.as_str();
    let mut operations = vec![match &write.value {
        Some(value) => TxnOp::put(key, value.as_ref(), None),
        None => TxnOp::delete(key, None),
    }];
    if let Some(term) = &write.term {
        operations.push(match term.to {
            Some(to) => TxnOp::put(term.key(), to.to_string(), None),
            None => TxnOp::delete(term.key(), None),
        });
    }
    operations.extend(write.preconditions.iter().filter_map(|precondition| {
        let value = precondition.put.as_deref()?;
        Some(TxnOp::put(precondition.key.as_str(), value, None))
    }));
    if let Some(tombstone) = write.tombstone() {
        operations.push(TxnOp::put(keys::TOMBSTONE, tombstone.as_ref(), None));
    }
    operations
}

/// Returns the reads that the transaction makes if a compare fails, from which [`refusal`] finds the reason.
fn reads_on_failure(write: &Write) -> Vec<TxnOp> {
    let tombstone = write.value.is_none().then(|| keys::TOMBSTONE.to_owned());
    let fence = write.fence.as_ref().map(keys::fence);
    let term = write.term.as_ref().map(Term::key);
    [Some(write.key.clone()), tombstone, fence, term]
        .into_iter()
        .flatten()
        .map(|key| TxnOp::get(key, None))
        .collect()
}

/// Returns why the transaction was refused; the revision of the write if that is since it was committed before, because
/// a proxy has sent it twice.
fn refusal(write: &Write, answer: &TxnResponse) -> Result<Revision, Error> {
    let mut found = answer.op_responses().into_iter().map(found);
    let current = found.next().flatten();
    let deleted = match write.value {
        Some(_) => None,
        None => found.next().flatten(),
    };
    let put = current.as_ref().filter(|entry| write.has_put(&entry.value));
    let deleted = deleted
        .as_ref()
        .filter(|entry| outcome::has_deleted(write, entry));
    if let Some(own) = put.or(deleted) {
        return Ok(own.revision);
    }
    let mut current_term = || {
        found
            .next()
            .flatten()
            .and_then(|entry| Term::read(&entry.value))
    };
    if let Some(fence) = &write.fence
        && current_term() != Some(fence.term)
    {
        return Err(Error::Fenced);
    }
    let expected = match write.expect {
        Expect::Absent => None,
        Expect::At(revision) => Some(revision),
    };
    if current.as_ref().map(|entry| entry.revision) != expected {
        return Err(Error::Conflict { current });
    }
    Err(match &write.term {
        Some(term) => match current_term() {
            current if current == term.from => Error::PreconditionFailed,
            current => Error::TermMoved { current },
        },
        None => Error::PreconditionFailed,
    })
}

fn found(response: TxnOpResponse) -> Option<Entry> {
    match response {
        TxnOpResponse::Get(mut response) => response.0.kvs.pop().map(entry),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_write_that_panics_has_an_unknown_outcome_and_is_counted() {
        let outcome = detached(async { panic!("thrown by a test") }.boxed()).await;
        assert_eq!(outcome, Err(Error::Unknown));
        let families = prometheus::gather();
        let panics = families
            .iter()
            .find(|family| family.name() == "setpoint_panics_total");
        assert!(format!("{panics:?}").contains("etcd-commit"));
    }
}
