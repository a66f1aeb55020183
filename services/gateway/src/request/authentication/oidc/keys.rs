//! The keys of an issuer, fetched in the background.
//!
//! ```text
//!             ┌── a token that no known key has signed, not before 1 s after the last fetch ──┐
//!             ▼                                                                                │
//!         fetching ──▶ known: fetched again each 10 minutes, or 10 s after a failure ──────────┤
//!             │                                                                                │
//!             └──▶ failed: the keys before stay ───────────────────────────────────────────────┘
//! ```

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::provider::Provider;
use crate::metrics::JwtIssuer;
use crate::request::jwt::{Token, WebKey};

/// The time after which keys are fetched again without a reason, so that those that are withdrawn are forgotten.
const REFRESH: Duration = Duration::from_secs(10 * 60);
/// The time after which a fetch that failed is tried again.
const RETRY: Duration = Duration::from_secs(10);
/// The least time between two fetches: anybody may send tokens that no known key has signed.
const SPACING: Duration = Duration::from_secs(1);
/// The longest time that a token waits for keys.
const WAIT: Duration = Duration::from_secs(5);
/// The number of tokens that may wait for keys.
const WAITING: usize = 64;

/// The keys of an issuer.
pub(super) struct Keys {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    state: watch::Sender<State>,
    wanted: Notify,
    waiting: Semaphore,
}

/// The keys of an issuer, or the reason why there are none.
#[derive(Clone, Default)]
struct State {
    /// `None` until a fetch has succeeded.
    keys: Option<Arc<[WebKey]>>,
    /// The number of fetches that have ended.
    ended: u64,
    is_fetching: bool,
}

impl State {
    fn verifies(&self, token: &Token<'_>) -> bool {
        let mut keys = self.keys.iter().flat_map(|keys| keys.iter());
        keys.any(|key| key.verifies(token))
    }

    /// Returns the number of fetches that have ended when the first one has that begins from now on.
    fn after_next(&self) -> u64 {
        self.ended + 1 + u64::from(self.is_fetching)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Keys {
    /// Returns keys that are fetched until this is dropped.
    pub(super) fn follow(provider: Provider, metrics: JwtIssuer) -> Self {
        let shared = Arc::new(Shared {
            state: watch::Sender::new(State::default()),
            wanted: Notify::new(),
            waiting: Semaphore::new(WAITING),
        });
        let task = tokio::spawn(shared.clone().run(provider, metrics));
        Self { shared, task }
    }

    /// Verifies the signature of a token. If no known key has made it, the keys are fetched again.
    ///
    /// # Errors
    /// If there are no keys yet, or none has made it.
    pub(super) async fn verify(&self, token: &Token<'_>) -> Result<(), String> {
        let mut state = self.shared.state.subscribe();
        let found = state.borrow().clone();
        if found.keys.is_none() {
            return Err("oidc: authenticator not initialized".into());
        }
        let refused = || Err("oidc: verify token: failed to verify signature".to_owned());
        if found.verifies(token) {
            return Ok(());
        }
        let Ok(_waiting) = self.shared.waiting.try_acquire() else {
            return refused();
        };
        self.shared.wanted.notify_one();
        let wanted = found.after_next();
        let is_over = |state: &State| state.ended >= wanted || state.verifies(token);
        match timeout(WAIT, state.wait_for(is_over)).await {
            Ok(Ok(state)) if state.verifies(token) => Ok(()),
            _ => refused(),
        }
    }
}

impl Shared {
    async fn run(self: Arc<Self>, mut provider: Provider, metrics: JwtIssuer) {
        loop {
            self.state.send_modify(|state| state.is_fetching = true);
            let fetched = provider.keys().await;
            metrics.fetched(fetched.as_ref().ok().map(|set| set.hash.as_str()));
            let pause = match &fetched {
                Ok(_) => REFRESH,
                Err(why) => {
                    let url = provider.issuer();
                    tracing::warn!(issuer = url, why, "the keys of an issuer cannot be fetched");
                    RETRY
                }
            };
            self.state.send_modify(|state| {
                state.is_fetching = false;
                state.ended += 1;
                if let Ok(set) = fetched {
                    state.keys = Some(set.keys.into());
                }
            });
            sleep(SPACING).await;
            let _ = timeout(pause, self.wanted.notified()).await;
        }
    }
}
