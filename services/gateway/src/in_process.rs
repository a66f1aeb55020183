//! A gateway within the process of a test.
#![allow(
    clippy::unwrap_used,
    reason = "only tests use this module, and a panic fails the test"
)]

pub mod custom_kind;

use std::net::SocketAddr;
use std::sync::Arc;

use setpoint_host::serve::{Limits, bind, serve as accept};
use setpoint_store::cache::{Cache, Settings};
use setpoint_store::{Memory, Store};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::registry::Registry;

/// A gateway on a free loopback port. It stops when dropped.
pub struct InProcess {
    /// The address of the listener.
    pub address: SocketAddr,
    /// The URL of the listener, `http://…`.
    pub url: String,
    _stop: DropGuard,
}

/// Starts a gateway over an empty store in memory.
pub async fn start() -> InProcess {
    start_over(Arc::new(Memory::default())).await
}

/// Starts a gateway over a store.
pub async fn start_over(store: Arc<dyn Store>) -> InProcess {
    serve(registry(store, Settings::default()).await).await
}

/// Starts a gateway over a registry.
pub async fn serve(registry: Arc<Registry>) -> InProcess {
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(accept(
        listener,
        router(registry),
        Limits::default(),
        stop.clone(),
    ));
    InProcess {
        address,
        url: format!("http://{address}"),
        _stop: stop.drop_guard(),
    }
}

/// Returns a registry over a store, with a cache that may not be loaded yet.
pub fn loading(store: Arc<dyn Store>, settings: Settings) -> Arc<Registry> {
    let cache = Cache::start(store.clone(), settings);
    Arc::new(Registry::new(store, cache))
}

/// Returns a registry over a store, with a cache that is loaded.
pub async fn registry(store: Arc<dyn Store>, settings: Settings) -> Arc<Registry> {
    registry_with(store, settings, |registry| registry).await
}

/// Like [`registry`], with further settings.
pub async fn registry_with(
    store: Arc<dyn Store>,
    settings: Settings,
    with: impl FnOnce(Registry) -> Registry,
) -> Arc<Registry> {
    let cache = Cache::start(store.clone(), settings);
    cache.synced().await;
    Arc::new(with(Registry::new(store, cache)))
}

/// Returns the gateway's router, without a listener.
pub fn router(registry: Arc<Registry>) -> axum::Router {
    crate::router(registry)
}
