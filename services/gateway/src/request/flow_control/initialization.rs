//! The seats of a watch, which it holds until its initial state is sent (upstream: the initialization signal of
//! watches).

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::stream::poll_fn;
use futures::{Stream, StreamExt as _};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::seat::{Admission, Seat};

/// The longest time for which a watch holds its seats: a client that does not read would hold them for ever.
pub(super) const LONGEST_INITIALIZATION: Duration = Duration::from_secs(10);

/// The seats of a watch. They are released when its initial state is sent, when the watch ends, or after ten seconds.
#[derive(Debug)]
pub(crate) struct Initialization {
    seat: Arc<Mutex<Option<Seat>>>,
    timer: Option<AbortHandle>,
    /// Whether the end of the initial state is marked by an event.
    is_marked: bool,
}

impl Initialization {
    /// Takes the seats of an admission. Without an event that marks the end of the initial state, it ends when the
    /// stream has no event at hand.
    pub(crate) fn of(admission: &Admission, is_marked: bool) -> Self {
        let seat = Arc::new(Mutex::new(admission.hand_over()));
        let timer = seat.lock().is_some().then(|| {
            let seat = seat.clone();
            let timer = async move {
                sleep(LONGEST_INITIALIZATION).await;
                release(&seat);
            };
            tokio::spawn(timer).abort_handle()
        });
        Self {
            seat,
            timer,
            is_marked,
        }
    }

    /// Returns the same stream. `is_end` returns whether an event marks the end of the initial state.
    pub(crate) fn over<T>(
        self,
        events: impl Stream<Item = T> + Send,
        is_end: impl Fn(&T) -> bool + Send,
    ) -> impl Stream<Item = T> + Send {
        let (mut events, mut initialization) = (Box::pin(events), Some(self));
        poll_fn(move |context| {
            let next = events.poll_next_unpin(context);
            let is_over = |of: &Self| match &next {
                Poll::Pending => !of.is_marked,
                Poll::Ready(Some(event)) => is_end(event),
                Poll::Ready(None) => true,
            };
            initialization.take_if(|of| is_over(of));
            next
        })
    }
}

impl Drop for Initialization {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            timer.abort();
        }
        release(&self.seat);
    }
}

/// Releases seats. That may wake others, so it is done without the lock.
fn release(seat: &Mutex<Option<Seat>>) {
    let seat = seat.lock().take();
    drop(seat);
}
