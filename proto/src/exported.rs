//! Which spans of this process a collector has taken: said by whoever exports them, heard by whoever called others
//! inside them.

use std::sync::{Arc, OnceLock};

use tokio::sync::broadcast::{self, Receiver, Sender};

/// Batches that wait for a listener who is busy; an older one is forgotten, and the spans in it count as not exported.
const WAITING: usize = 64;

static EXPORTED: OnceLock<Sender<Arc<[u64]>>> = OnceLock::new();

/// From now on this process says so.
pub fn begin() {
    EXPORTED.get_or_init(|| broadcast::channel(WAITING).0);
}

/// These have been taken.
pub fn tell(spans: Arc<[u64]>) {
    if let Some(exported) = EXPORTED.get() {
        // Nobody may be listening.
        let _ = exported.send(spans);
    }
}

/// What will be taken from now on; `None` where nothing is exported.
pub fn listen() -> Option<Receiver<Arc<[u64]>>> {
    EXPORTED.get().map(Sender::subscribe)
}
