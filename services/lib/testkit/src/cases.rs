//! How one suite of tests is run on several stores.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use setpoint_gateway::store::Store;
use setpoint_model::Revision;
use tokio::time::timeout;

/// A store under test, with what the port leaves out but its history is subject to.
pub trait Subject: Send + Sync {
    /// The store; always the same one.
    fn store(&self) -> Arc<dyn Store>;
    /// Takes away what was before this revision.
    fn compact(&self, at: Revision) -> BoxFuture<'_, ()>;
}

/// Every test of a suite on the subject that `$start` (an async expression) makes for it.
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

/// What must come comes soon; a test that waits for more than this has failed.
pub(crate) async fn soon<T>(what: impl Debug, coming: impl Future<Output = T>) -> T {
    match timeout(Duration::from_secs(60), coming).await {
        Ok(come) => come,
        Err(_) => panic!("waited in vain for {what:?}"),
    }
}
