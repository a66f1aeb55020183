//! Requests that write nothing, to a shared gateway.

use std::cell::RefCell;

use axum::body::Body;
use http::Request;

use crate::gateway::{Gateway, Reply};

/// The number of requests after which the gateway is replaced, so that the state of clients does not accumulate.
const REQUESTS: usize = 10_000;

thread_local! {
    static SHARED: RefCell<Option<(Gateway, usize)>> = const { RefCell::new(None) };
}

/// Sends a request that writes nothing to a gateway with an example of each kind.
pub fn send(request: Request<Body>) -> Reply {
    with(|gateway| gateway.send(request))
}

/// Calls `work` with that gateway, and checks that nothing was written.
pub fn with<T>(work: impl FnOnce(&Gateway) -> T) -> T {
    SHARED.with_borrow_mut(|shared| {
        let (gateway, used) = shared.get_or_insert_with(|| (Gateway::with_examples(), 0));
        let before = gateway.revision();
        let done = work(gateway);
        assert_eq!(gateway.revision(), before, "something was written");
        *used += 1;
        if *used >= REQUESTS {
            *shared = None;
        }
        done
    })
}
