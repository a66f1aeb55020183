//! Work on much data, done so that it does not hold up other requests.

use std::sync::LazyLock;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

/// Encoding or decoding so many bytes takes about a millisecond.
const LIGHT: usize = 128 << 10;

/// Limits heavy work to the number of processors: there are as many worker threads, so other tasks get at least half of the time.
static PLACES: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)));

/// Does `work` on `bytes` of data. Where that takes long, few do so at once, and other tasks go on meanwhile on other threads.
pub(crate) async fn heavy<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes <= LIGHT {
        return work();
    }
    let _place = PLACES.acquire().await;
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
    async fn other_tasks_go_on_while_much_is_worked_on() {
        let (asked, question) = std::sync::mpsc::channel();
        let (response, answered) = std::sync::mpsc::channel();
        tokio::spawn(async move {
            tokio::task::yield_now().await;
            response.send(question.recv()).unwrap();
        });
        let outcome = heavy(LIGHT + 1, move || {
            asked.send(7).unwrap();
            answered.recv().unwrap()
        });
        assert_eq!(tokio::spawn(outcome).await.unwrap(), Ok(7));
    }
}
