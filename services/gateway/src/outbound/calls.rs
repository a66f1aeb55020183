//! The number of calls of one server.

use tokio::sync::{Semaphore, SemaphorePermit};

/// The number of calls that a server may have in flight. Others wait, so that a slow one holds a bounded number of
/// objects.
const IN_FLIGHT: usize = 32;
/// The number of calls that may wait or be in flight. Further ones fail at once, so that other requests find seats of
/// flow control while a server hangs.
const ADMITTED: usize = 160;

/// Bounds the calls of a server.
pub(crate) struct Calls {
    admitted: Semaphore,
    in_flight: Semaphore,
}

/// A call in flight.
pub(crate) struct Call<'c> {
    _admitted: SemaphorePermit<'c>,
    _in_flight: SemaphorePermit<'c>,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            admitted: Semaphore::new(ADMITTED),
            in_flight: Semaphore::new(IN_FLIGHT),
        }
    }
}

impl Calls {
    /// Waits until a call may begin.
    ///
    /// # Errors
    /// If too many others wait.
    pub(crate) async fn begin(&self) -> Result<Call<'_>, String> {
        let admitted = self.admitted.try_acquire();
        let admitted = admitted.map_err(|_| "too many calls wait for the webhook".to_owned())?;
        let in_flight = self.in_flight.acquire().await;
        Ok(Call {
            _admitted: admitted,
            _in_flight: in_flight.map_err(|error| error.to_string())?,
        })
    }
}
