//! Runs CPU-bound work on large data without delaying other requests.

use std::sync::LazyLock;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

/// The largest size in bytes that counts as light: encoding or decoding it takes about a millisecond.
const LIGHT_MAX: usize = 128 << 10;

/// Permits for heavy work, one per processor: with as many worker threads, other tasks get at least half of the time.
static PERMITS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)));

/// Runs `work` on `bytes` of data. Heavy work waits for a permit, and runs where it does not block the tasks of its
/// thread.
pub(crate) async fn offload<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes <= LIGHT_MAX {
        return work();
    }
    let _permit = PERMITS.acquire().await;
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => block_in_place(work),
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks F2.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn heavy_work_does_not_block_other_tasks() {
        let (request, requested) = tokio::sync::oneshot::channel();
        let (response, responses) = std::sync::mpsc::channel();
        tokio::spawn(async move { response.send(requested.await).unwrap() });
        let outcome = offload(LIGHT_MAX + 1, move || {
            request.send(7).unwrap();
            responses.recv().unwrap()
        });
        assert_eq!(tokio::spawn(outcome).await.unwrap(), Ok(7));
    }
}
