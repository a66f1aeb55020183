//! The connections that clients keep.

use std::time::Duration;

use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// The time after which an idle connection is closed.
const IDLE: Duration = Duration::from_secs(90);

/// Returns the builder of a client that closes idle connections after 90 s.
pub(crate) fn pool() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE);
    builder
}
