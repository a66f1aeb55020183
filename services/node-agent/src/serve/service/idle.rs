//! Ends streams that carry nothing for long.

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};
use tonic::Status;

/// The time at which one of the two directions of a stream last carried something.
#[derive(Clone)]
pub struct Idle {
    last: Arc<Mutex<Instant>>,
    limit: Duration,
}

impl Idle {
    /// Returns the clock of a stream that may carry nothing for `limit`; zero for any time.
    pub fn new(limit: Duration) -> Self {
        Self {
            last: Arc::new(Mutex::new(Instant::now())),
            limit,
        }
    }

    /// Notes that something was carried.
    pub fn touch(&self) {
        *self.last.lock() = Instant::now();
    }

    /// Notes each item of one direction.
    pub fn watch<S: Stream>(&self, stream: S) -> impl Stream<Item = S::Item> + use<S> {
        let this = self.clone();
        stream.inspect(move |_| this.touch())
    }

    /// Ends a stream with an error once neither direction has carried anything for the limit.
    pub fn limit<T: Send + 'static>(
        self,
        stream: impl Stream<Item = Result<T, Status>> + Send + 'static,
    ) -> impl Stream<Item = Result<T, Status>> + Send + 'static {
        let seconds = self.limit.as_secs();
        let over = self.clone().over();
        let reason = async move {
            let message = format!("the connection was idle for {seconds} s");
            self.is_over()
                .then(|| Err(Status::deadline_exceeded(message)))
        };
        let reason = futures::stream::once(reason).filter_map(std::future::ready);
        stream.take_until(over).chain(reason)
    }

    async fn over(self) {
        loop {
            if self.is_over() {
                return;
            }
            let due = self.last.lock().checked_add(self.limit);
            match due.filter(|_| !self.limit.is_zero()) {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        }
    }

    fn is_over(&self) -> bool {
        !self.limit.is_zero() && self.last.lock().elapsed() >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(4 * 3600);

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_neither_direction_has_carried_anything_for_the_limit() {
        let (sender, mut receiver) = mpsc::channel::<Result<u8, Status>>(1);
        let items = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
        let idle = Idle::new(LIMIT);
        let mut stream = Box::pin(idle.clone().limit(idle.watch(items)));
        let began = Instant::now();
        let feed = async {
            tokio::time::sleep(LIMIT / 2).await;
            sender.send(Ok(1)).await.unwrap();
            tokio::time::sleep(LIMIT / 2).await;
            // The other direction.
            idle.touch();
        };
        let read = async {
            assert_eq!(stream.next().await.unwrap().unwrap(), 1);
            let end = stream.next().await.unwrap().unwrap_err();
            assert_eq!(end.message(), "the connection was idle for 14400 s");
            assert!(stream.next().await.is_none());
        };
        tokio::join!(feed, read);
        let took = began.elapsed();
        assert!(took >= LIMIT * 2 && took < LIMIT * 2 + Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_of_zero_is_none_and_an_ended_stream_has_no_error() {
        for limit in [Duration::ZERO, LIMIT] {
            let items = futures::stream::iter([Ok::<_, Status>(1)]);
            let all: Vec<_> = Idle::new(limit).limit(items).collect().await;
            assert!(all.len() == 1 && all[0].is_ok());
        }
    }
}
