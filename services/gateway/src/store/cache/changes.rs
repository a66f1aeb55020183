//! Every change of one kind's objects, with what was there before: for who compares.

use std::pin::pin;
use std::sync::Arc;

use setpoint_codec::Kind;
use tokio::sync::Notify;

use super::log::Topic;
use super::{Cache, Cached, Shared};

/// So many changes are taken at once.
const AT_ONCE: usize = 64;

/// How an object stood before and after a write.
#[derive(Clone, Debug)]
pub struct Change {
    /// As it stood.
    pub old: Arc<Cached>,
    /// As it stands.
    pub new: Arc<Cached>,
}

/// A cursor into the log. Who falls behind goes on with what comes next, and is not told what was missed.
pub struct Changes {
    shared: Arc<Shared>,
    topic: Topic,
    wake: Arc<Notify>,
    next: u64,
}

impl Cache {
    /// Changes of this kind's objects from now on. What is created or deleted is left out.
    pub fn changes(&self, kind: &'static Kind) -> Changes {
        let topic = Topic::Kind(&kind.type_url);
        let shared = self.shared.clone();
        let mut state = shared.state.write();
        let wake = state.log.subscribe(&topic);
        let next = state.log.next();
        drop(state);
        Changes {
            shared,
            topic,
            wake,
            next,
        }
    }
}

impl Changes {
    /// The next changes, as soon as there are some; `None` once the cache is closed.
    pub async fn next(&mut self) -> Option<Vec<Change>> {
        loop {
            let wake = self.wake.clone();
            let mut woken = pin!(wake.notified());
            // From here on no wake is missed, so what is not there when looked for is announced.
            woken.as_mut().enable();
            let changes = self.look()?;
            if !changes.is_empty() {
                return Some(changes);
            }
            woken.await;
        }
    }

    /// Empty only when all there is has been looked at.
    fn look(&mut self) -> Option<Vec<Change>> {
        let state = self.shared.state.read();
        if state.is_closed() {
            return None;
        }
        loop {
            let Ok((records, next)) = state.log.read(&self.topic, self.next, AT_ONCE) else {
                self.next = state.log.next();
                return Some(Vec::new());
            };
            self.next = next;
            let both = records.iter().filter_map(|record| {
                let (old, new) = (record.old.clone()?, record.new.clone()?);
                Some(Change { old, new })
            });
            let changes: Vec<_> = both.collect();
            if !changes.is_empty() || records.is_empty() {
                return Some(changes);
            }
        }
    }
}
