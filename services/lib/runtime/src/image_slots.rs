//! The bound on concurrent pulls: of each registry, so that one that does not answer holds back no pull of another.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::image_reference::registry;

/// More concurrent pulls of one registry would only share the same bandwidth.
const MAX_CONCURRENT_PULLS: usize = 4;

/// The slots of each registry from which images are pulled.
#[derive(Default)]
pub struct Slots(Mutex<HashMap<String, Arc<Semaphore>>>);

impl Slots {
    /// Waits for a slot of the registry of an image. `None` only if its slots were closed, which they never are.
    pub async fn take(&self, image: &str) -> Option<OwnedSemaphorePermit> {
        let slots = {
            let mut all = self.0.lock();
            // A slot that is taken or waited for keeps the registry's.
            all.retain(|_, slots| Arc::strong_count(slots) > 1);
            let new = || Arc::new(Semaphore::new(MAX_CONCURRENT_PULLS));
            let slots = all.entry(registry(image).to_owned()).or_insert_with(new);
            Arc::clone(slots)
        };
        slots.acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_registry_has_four_slots_whatever_is_pulled_from_others() {
        let slots = Slots::default();
        let take = |image: &'static str| slots.take(image).now_or_never().flatten();
        let taken: Vec<_> = (0..4).map(|_| take("hung.test/app:1")).collect();
        assert!(taken.iter().all(Option::is_some));
        assert!(take("hung.test/other@sha256:00").is_none());
        assert!(take("app").is_some() && take("hung.test:5000/app").is_some());
        drop(taken);
        assert!(take("hung.test/other").is_some());
        assert_eq!(slots.0.lock().len(), 1, "only those in use are kept");
    }
}
