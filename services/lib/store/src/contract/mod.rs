//! The contracts of [`Store`] and of [`Cache`](crate::cache::Cache), as suites of tests for every implementation.
//!
//! Run them with [`store_contract!`](crate::store_contract) and [`cache_contract!`](crate::cache_contract).
#![allow(clippy::unwrap_used, reason = "tests may panic")]

pub mod cache;
mod faulty;
pub mod objects;
pub mod store;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _, ready};
use setpoint_model::Revision;
use tokio::time::timeout;

use crate::{Memory, Store};

pub use faulty::FaultyStore;

/// A store under test, and its compaction, which is not part of the port.
pub trait Subject: Send + Sync {
    /// Returns the store; always the same one.
    fn store(&self) -> Arc<dyn Store>;
    /// Discards the history before this revision.
    fn compact(&self, at: Revision) -> BoxFuture<'_, ()>;
}

impl Subject for Memory {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn compact(&self, at: Revision) -> BoxFuture<'_, ()> {
        Self::compact(self, at);
        ready(()).boxed()
    }
}

/// Defines tests of a suite. Each runs on a new subject from `$start`, an async expression.
#[macro_export]
macro_rules! run_cases {
    ($start:expr, $suite:path: $($case:ident)*) => {$(
        #[tokio::test]
        async fn $case() {
            use $suite as suite;
            suite::$case($start.await).await;
        }
    )*};
}

/// Awaits a future for at most a minute; after that the test has failed.
pub(crate) async fn soon<T>(what: impl Debug, future: impl Future<Output = T>) -> T {
    match timeout(Duration::from_secs(60), future).await {
        Ok(output) => output,
        Err(_) => panic!("timed out waiting for {what:?}"),
    }
}
