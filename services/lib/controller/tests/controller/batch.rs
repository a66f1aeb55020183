//! Batches of keys.

use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::Instant;

use crate::queue::queue;
use crate::server::soon;

/// Checks C7: keys are taken by rank, not in the order in which they were added.
#[tokio::test(start_paused = true)]
async fn a_batch_holds_the_keys_of_the_lowest_ranks() {
    let queue = queue();
    let keys = [50, 10, 41, 30, 20, 40];
    keys.into_iter().for_each(|key| queue.add(key, None));
    let taken = async |count| {
        let batch = soon(queue.next_batch(count, |key| key / 10)).await;
        let batch = batch.into_iter().flatten();
        let keys = batch.map(|ticket| {
            let key = ticket.key;
            ticket.done(None);
            key
        });
        keys.collect::<Vec<_>>()
    };
    assert_eq!(taken(2).await, [10, 20]);
    assert_eq!(taken(2).await, [30, 41], "the earlier of equals");
    assert_eq!(taken(5).await, [40, 50], "all that there are");
    queue.add(60, None);
    queue.close();
    assert_eq!(taken(5).await, [60], "what was queued before");
    assert_eq!(taken(5).await, [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_never_empty() {
    let queue = queue();
    let batch = || queue.next_batch(2, |key| *key);
    assert!(batch().now_or_never().is_none());
    queue.add_after(1, Duration::from_secs(5));
    let begin = Instant::now();
    let taken = soon(batch()).await.unwrap();
    assert_eq!((taken.len(), begin.elapsed().as_secs()), (1, 5));
    queue.close();
    assert!(soon(batch()).await.is_none());
}
