//! A gateway in this process.

use std::sync::Arc;

use setpoint_gateway::registry::Registry;
use setpoint_gateway::store::cache::{self, Cache};
use setpoint_host::serve;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Memory;

/// A gateway over an empty store, on a free port of loopback; it ends when dropped.
pub struct InProcess {
    /// Where it listens, `http://…`.
    pub url: String,
    _stop: DropGuard,
}

/// Serves a gateway.
pub async fn serve_gateway() -> InProcess {
    let store = Arc::new(Memory::default());
    let cache = Cache::start(store.clone(), cache::Settings::default());
    cache.synced().await;
    let registry = Arc::new(Registry::new(store, cache));
    let listener = serve::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(serve::serve(
        listener,
        setpoint_gateway::router(registry),
        serve::Limits::default(),
        stop.clone(),
    ));
    InProcess {
        url: format!("http://{address}"),
        _stop: stop.drop_guard(),
    }
}
