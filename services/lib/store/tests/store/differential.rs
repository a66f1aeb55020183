//! A differential test: the store in memory gives the same answers as etcd.

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use setpoint_model::Revision;
use setpoint_store::contract::Subject as _;
use setpoint_store::{
    Batch, Entry, Error, Expect, Fence, Memory, Page, Range, Store, Term, Write, keys,
};

use crate::subjects::OnEtcd;

/// An operation. There are only a few keys, so that operations conflict.
#[derive(Clone, Debug)]
enum Operation {
    Write {
        key: u8,
        expect: Guess,
        value: Option<u8>,
        fence: Option<u64>,
        term: Option<(Option<u64>, Option<u64>)>,
    },
    Get {
        key: u8,
    },
    List {
        after: Option<u8>,
        limit: usize,
        back: Option<u64>,
    },
}

/// The expectation of a write. It is right more often than not.
#[derive(Clone, Copy, Debug)]
enum Guess {
    Current,
    Absent,
    Stale,
}

fn operation() -> impl Strategy<Value = Operation> {
    let guess =
        prop_oneof![4 => Just(Guess::Current), 1 => Just(Guess::Absent), 1 => Just(Guess::Stale)];
    let value = prop::option::weighted(0.7, any::<u8>());
    let fence = prop::option::weighted(0.2, 0..3u64);
    let term = prop::option::weighted(0.2, (prop::option::of(0..3u64), prop::option::of(0..3u64)));
    let write =
        (0..4u8, guess, value, fence, term).prop_map(|(key, expect, value, fence, term)| {
            Operation::Write {
                key,
                expect,
                value,
                fence,
                term,
            }
        });
    let list = (
        prop::option::of(0..4u8),
        0..3usize,
        prop::option::of(0..10u64),
    )
        .prop_map(|(after, limit, back)| Operation::List { after, limit, back });
    prop_oneof![6 => write, 1 => (0..4u8).prop_map(|key| Operation::Get { key }), 1 => list]
}

/// An answer, with revisions relative to the start of the test.
#[derive(Debug, PartialEq)]
enum Answer {
    Committed(Result<u64, Error>),
    Got(Option<Entry>),
    Listed(Result<Page, Error>),
}

/// A store, and its revision at the start of the test.
struct Side {
    store: Arc<dyn Store>,
    start: u64,
    round: usize,
}

impl Side {
    fn key(&self, key: u8) -> String {
        format!("{}{}", self.prefix(), key)
    }

    fn prefix(&self) -> String {
        format!("{}configmaps/round-{}/", keys::ROOT, self.round)
    }

    fn lease(&self) -> (String, String) {
        (format!("round-{}", self.round), "lease".to_owned())
    }

    fn since(&self, revision: Revision) -> u64 {
        revision.raw() - self.start
    }

    fn normal(&self, entry: Entry) -> Entry {
        Entry {
            revision: Revision::from_raw(self.since(entry.revision)),
            ..entry
        }
    }

    fn normal_error(&self, error: Error) -> Error {
        match error {
            Error::Conflict { current } => Error::Conflict {
                current: current.map(|entry| self.normal(entry)),
            },
            other => other,
        }
    }

    fn normal_page(&self, page: Page) -> Page {
        Page {
            revision: Revision::from_raw(self.since(page.revision)),
            entries: page
                .entries
                .into_iter()
                .map(|entry| self.normal(entry))
                .collect(),
            ..page
        }
    }

    async fn perform(&self, operation: &Operation) -> Answer {
        match operation {
            Operation::Get { key } => {
                let got = self.store.get(&self.key(*key)).await.unwrap();
                Answer::Got(got.map(|entry| self.normal(entry)))
            }
            Operation::List { after, limit, back } => {
                let now = self.store.revision().await.unwrap().raw();
                let range = Range {
                    prefix: self.prefix(),
                    after: after.map(|key| self.key(key)),
                    limit: *limit,
                    at: back
                        .map(|back| Revision::from_raw(now.saturating_sub(back).max(self.start))),
                    keys_only: false,
                };
                let page = self.store.list(range).await;
                Answer::Listed(page.map(|page| self.normal_page(page)))
            }
            Operation::Write {
                key,
                expect,
                value,
                fence,
                term,
            } => {
                let (namespace, lease) = self.lease();
                let expect = match self.guess(*key, *expect).await {
                    // A deletion always expects an entry.
                    Expect::Absent if value.is_none() => Expect::At(Revision::from_raw(self.start)),
                    expect => expect,
                };
                let write = Write {
                    expect,
                    value: value.map(|value| vec![value].into()),
                    fence: fence.map(|term| Fence {
                        namespace: namespace.clone(),
                        lease: lease.clone(),
                        term,
                    }),
                    term: term.map(|(from, to)| Term {
                        namespace,
                        lease,
                        from,
                        to,
                    }),
                    ..Write::create(self.key(*key), Default::default())
                };
                let committed = self.store.commit(write).await;
                Answer::Committed(
                    committed
                        .map(|at| self.since(at))
                        .map_err(|error| self.normal_error(error)),
                )
            }
        }
    }

    async fn guess(&self, key: u8, guess: Guess) -> Expect {
        let current = self.store.get(&self.key(key)).await.unwrap();
        match (guess, current) {
            (Guess::Current, Some(entry)) => Expect::At(entry.revision),
            (Guess::Stale, _) => Expect::At(Revision::from_raw(self.start)),
            _ => Expect::Absent,
        }
    }

    async fn history(&self) -> Vec<Batch> {
        let newest = self.store.revision().await.unwrap().raw();
        let count = usize::try_from(newest - self.start).unwrap();
        let batches = self.store.watch(Revision::from_raw(self.start)).take(count);
        let mut batches: Vec<Batch> = batches.try_collect().await.unwrap();
        for batch in &mut batches {
            batch.revision = Revision::from_raw(self.since(batch.revision));
        }
        batches
    }
}

/// Checks S11.
#[test]
fn the_store_in_memory_and_etcd_give_the_same_answers() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let etcd = runtime.block_on(OnEtcd::start());
    let memory = Memory::default();
    let round = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config {
        cases: 40,
        failure_persistence: None,
        ..Config::default()
    });
    let operations = prop::collection::vec(operation(), 1..40);
    let outcome = runner.run(&operations, |operations| {
        round.set(round.get() + 1);
        runtime.block_on(compare(
            [etcd.store(), memory.store()],
            round.get(),
            operations,
        ))
    });
    outcome.unwrap();
}

async fn compare(
    stores: [Arc<dyn Store>; 2],
    round: usize,
    operations: Vec<Operation>,
) -> Result<(), TestCaseError> {
    let mut sides = Vec::new();
    for store in stores {
        let start = store.revision().await.unwrap().raw();
        sides.push(Side {
            store,
            start,
            round,
        });
    }
    for operation in &operations {
        let (etcd, memory) = (
            sides[0].perform(operation).await,
            sides[1].perform(operation).await,
        );
        prop_assert_eq!(etcd, memory, "{:?}", operation);
    }
    prop_assert_eq!(sides[0].history().await, sides[1].history().await);
    Ok(())
}
