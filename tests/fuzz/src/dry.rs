//! Requests that change nothing, all to one gateway.

use std::cell::RefCell;

use axum::body::Body;
use http::Request;

use crate::gateway::{Gateway, Reply};

/// Every so many requests another gateway is started: what each client leaves behind should not add up.
const REQUESTS: usize = 10_000;

thread_local! {
    static SHARED: RefCell<Option<(Gateway, usize)>> = const { RefCell::new(None) };
}

/// Sends a request that changes nothing to a gateway that has an example of each kind.
pub fn send(request: Request<Body>) -> Reply {
    with(|gateway| gateway.send(request))
}

/// Lends that gateway.
pub fn with<T>(work: impl FnOnce(&Gateway) -> T) -> T {
    SHARED.with_borrow_mut(|shared| {
        let (gateway, used) = shared.get_or_insert_with(|| (Gateway::furnished(), 0));
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
