//! Unschedulable Pods: they wait for a relevant change.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::QueueHandle;
use setpoint_model::Key;
use tokio::time::Instant;

/// Upstream's `podInitialBackoffSeconds` and `podMaxBackoffSeconds`.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// The longest wait without a change, in case one was not recognized as relevant (upstream:
/// `podMaxInUnschedulablePodsDuration`).
pub const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Unschedulable Pods, each with the end of its backoff.
///
/// No wake-up is lost: one during the decision on a Pod counts when the Pod is added (upstream replays its
/// `inFlightEvents`).
#[derive(Debug, Default)]
pub struct Unschedulable {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    wake_ups: u64,
    waiting: HashMap<Key, Wait>,
}

#[derive(Debug)]
struct Wait {
    since: Timestamp,
    attempts: u32,
    not_before: Instant,
    /// Whether a wake-up came after the observation of its last decision.
    woken: bool,
    /// Whether a change of nodes or of other Pods can help (upstream: not `UnschedulableAndUnresolvable`).
    resolvable: bool,
}

/// The number of wake-ups before the cluster was observed.
#[derive(Clone, Copy, Debug)]
pub struct Observed(u64);

/// The result of a decision without a node.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// The time since which the Pod could be scheduled. The first one is kept.
    pub since: Timestamp,
    /// Whether a change of nodes or of other Pods can help.
    pub resolvable: bool,
}

impl Unschedulable {
    /// Returns the number of wake-ups so far. To be called before the cluster is observed.
    pub fn observed(&self) -> Observed {
        Observed(self.state.lock().wake_ups)
    }

    /// Adds a Pod that no node fits. If a wake-up came since the observation, it is tried again after its backoff.
    pub fn add(&self, key: &Key, refusal: Refusal, observed: Observed, queue: &QueueHandle) {
        let state = &mut *self.state.lock();
        let former = state.waiting.get(key);
        let (attempts, since) =
            former.map_or((0, refusal.since), |wait| (wait.attempts, wait.since));
        let backoff = backoff(attempts);
        let woken = refusal.resolvable && state.wake_ups != observed.0;
        let wait = Wait {
            since,
            attempts: attempts.saturating_add(1),
            not_before: Instant::now() + backoff,
            woken,
            resolvable: refusal.resolvable,
        };
        state.waiting.insert(key.clone(), wait);
        if woken {
            queue.add_after(key.clone(), backoff);
        }
    }

    /// Returns the number of decisions without a node, and the time since which the Pod could be scheduled.
    pub fn attempts(&self, key: &Key) -> Option<(u32, Timestamp)> {
        let state = self.state.lock();
        let wait = state.waiting.get(key);
        wait.map(|wait| (wait.attempts, wait.since))
    }

    /// Removes a Pod that needs no node.
    pub fn remove(&self, key: &Key) {
        self.state.lock().waiting.remove(key);
    }

    /// Removes all Pods.
    pub fn clear(&self) {
        self.state.lock().waiting.clear();
    }

    /// Wakes the Pods that a change may help: each is tried again at the end of its backoff.
    pub fn wake(&self, queue: &QueueHandle) {
        let now = Instant::now();
        let state = &mut *self.state.lock();
        state.wake_ups = state.wake_ups.wrapping_add(1);
        let asleep = |wait: &Wait| wait.resolvable && !wait.woken;
        for (key, wait) in state.waiting.iter_mut().filter(|(_, wait)| asleep(wait)) {
            wait.woken = true;
            queue.add_after(key.clone(), wait.not_before.saturating_duration_since(now));
        }
    }

    /// Returns the number of Pods that wait for the end of their backoff, and of those that wait for a change.
    pub fn counts(&self, now: Instant) -> (usize, usize) {
        let state = self.state.lock();
        let backoff = |wait: &&Wait| wait.woken && wait.not_before > now;
        let asleep = |wait: &&Wait| !wait.woken;
        let waiting = || state.waiting.values();
        (
            waiting().filter(backoff).count(),
            waiting().filter(asleep).count(),
        )
    }
}

fn backoff(attempts: u32) -> Duration {
    let doubled = 2u32.saturating_pow(attempts);
    FIRST_BACKOFF.saturating_mul(doubled).min(LONGEST_BACKOFF)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use setpoint_controller::queue::Limiter;
    use setpoint_controller::{Queue, Ticket};
    use tokio::runtime::Builder;
    use tokio::time::{advance, timeout};

    use super::*;

    const REFUSAL: Refusal = Refusal {
        since: Timestamp::UNIX_EPOCH,
        resolvable: true,
    };

    #[test]
    fn backoff_doubles_from_one_second_to_ten() {
        let seconds = |attempts| backoff(attempts).as_secs();
        assert_eq!([0, 1, 2, 3, 4, 40].map(seconds), [1, 2, 4, 8, 10, 10]);
    }

    /// An empty state, and a queue with its handle.
    fn start() -> (Unschedulable, Queue<Key>, QueueHandle) {
        let queue = Queue::new("test", Limiter::FastSlow);
        let handle = QueueHandle::from(queue.clone());
        (Unschedulable::default(), queue, handle)
    }

    #[tokio::test(start_paused = true)]
    async fn an_unschedulable_pod_waits_until_something_changes_and_then_backs_off() {
        let (pods, queue, handle) = start();
        let key = Key::new("default", "web");
        let now = Instant::now();
        pods.add(&key, REFUSAL, pods.observed(), &handle);
        assert_eq!((queue.delayed(), pods.counts(now)), (0, (0, 1)));
        pods.wake(&handle);
        assert_eq!(pods.counts(now), (1, 0));
        assert_eq!((queue.len(), queue.delayed()), (0, 1), "it backs off");
        let over = now + FIRST_BACKOFF;
        assert_eq!(pods.counts(over), (0, 0), "it is active");
        pods.add(&key, REFUSAL, pods.observed(), &handle);
        assert_eq!(pods.attempts(&key), Some((2, Timestamp::UNIX_EPOCH)));
        pods.remove(&key);
        assert_eq!((pods.attempts(&key), pods.counts(now)), (None, (0, 0)));
    }

    /// Checks F3.
    #[tokio::test(start_paused = true)]
    async fn a_change_while_a_pod_is_decided_on_counts_once_it_is_added() {
        let (pods, queue, handle) = start();
        let key = Key::new("default", "web");
        for backoff in [FIRST_BACKOFF, FIRST_BACKOFF * 2] {
            let observed = pods.observed();
            pods.wake(&handle);
            assert_eq!(pods.counts(Instant::now()), (0, 0), "it is active");
            pods.add(&key, REFUSAL, observed, &handle);
            assert_eq!(pods.counts(Instant::now()), (1, 0));
            advance(backoff - Duration::from_millis(1)).await;
            assert_eq!((queue.len(), queue.delayed()), (0, 1));
            advance(Duration::from_millis(2)).await;
            let ticket = timeout(Duration::from_millis(1), queue.next()).await;
            ticket.unwrap().unwrap().done(None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_whose_decision_could_not_be_written_is_woken_again() {
        let (pods, queue, handle) = start();
        let key = Key::new("default", "web");
        pods.add(&key, REFUSAL, pods.observed(), &handle);
        // A decision that was not written has no effect here.
        pods.observed();
        assert_eq!(pods.counts(Instant::now()), (0, 1));
        pods.wake(&handle);
        assert_eq!(queue.delayed(), 1);
    }

    /// Checks F5: a Pod that no change of nodes or other Pods can help is not woken.
    #[tokio::test(start_paused = true)]
    async fn a_pod_that_no_change_can_help_is_not_woken() {
        let (pods, queue, handle) = start();
        let key = Key::new("default", "web");
        let refusal = Refusal {
            resolvable: false,
            ..REFUSAL
        };
        let observed = pods.observed();
        pods.wake(&handle);
        pods.add(&key, refusal, observed, &handle);
        pods.wake(&handle);
        assert_eq!(pods.counts(Instant::now()), (0, 1));
        assert_eq!((queue.len(), queue.delayed()), (0, 0));
    }

    /// Events in any order.
    #[derive(Clone, Debug)]
    enum Event {
        /// A cycle takes what is queued and observes the cluster.
        Observe,
        /// The oldest of the Pods in flight is refused.
        MarkUnschedulable,
        /// Writing that failed.
        Fail,
        /// A node or a Pod changes in a way that matters to all.
        Wake,
        /// This Pod is changed.
        Change(usize),
        /// A number of milliseconds passes.
        Pass(u64),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            Just(Event::Observe),
            Just(Event::MarkUnschedulable),
            Just(Event::Fail),
            Just(Event::Wake),
            (0..PODS).prop_map(Event::Change),
            (0u64..3000).prop_map(Event::Pass),
        ]
    }

    const PODS: usize = 3;

    /// A scheduler that binds nothing, and for each Pod the event that it must be tried again for.
    struct Model {
        pods: Unschedulable,
        queue: Queue<Key>,
        handle: QueueHandle,
        in_flight: Vec<(Ticket<Key>, Observed)>,
        due: [bool; PODS],
    }

    impl Model {
        fn new() -> Self {
            let (pods, queue, handle) = start();
            let model = Self {
                pods,
                queue,
                handle,
                in_flight: Vec::new(),
                due: [true; PODS],
            };
            (0..PODS).for_each(|pod| model.queue.add(key(pod), None));
            model
        }

        async fn happen(&mut self, event: &Event) {
            match event {
                Event::Observe => self.observe().await,
                Event::MarkUnschedulable => self.refuse(),
                Event::Fail if self.in_flight.is_empty() => {}
                Event::Fail => {
                    let (ticket, _) = self.in_flight.remove(0);
                    self.due[index(&ticket.key)] = true;
                    ticket.retry();
                }
                Event::Wake => {
                    self.pods.wake(&self.handle);
                    self.due = [true; PODS];
                }
                Event::Change(pod) => {
                    self.queue.add(key(*pod), None);
                    self.due[*pod] = true;
                }
                Event::Pass(millis) => advance(Duration::from_millis(*millis)).await,
            }
        }

        async fn observe(&mut self) {
            let mut tickets = Vec::new();
            while let Ok(Some(ticket)) = timeout(Duration::ZERO, self.queue.next()).await {
                tickets.push(ticket);
            }
            let observed = self.pods.observed();
            for ticket in tickets {
                self.due[index(&ticket.key)] = false;
                self.in_flight.push((ticket, observed));
            }
        }

        fn refuse(&mut self) {
            if !self.in_flight.is_empty() {
                let (ticket, observed) = self.in_flight.remove(0);
                let key = &ticket.key;
                self.pods.add(key, REFUSAL, observed, &self.handle);
                ticket.done(Some(LONGEST_WAIT));
            }
        }
    }

    fn key(pod: usize) -> Key {
        Key::new("default", pod.to_string())
    }

    fn index(key: &Key) -> usize {
        key.name.parse().expect("a number")
    }

    proptest! {
        /// Checks F3 and C6: whatever the order, a Pod is tried again after an event that matters to it, once its
        /// backoff is over.
        #[test]
        fn no_wake_up_is_lost(events in prop::collection::vec(event(), 0..40)) {
            let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
            runtime.expect("a runtime").block_on(async {
                let mut model = Model::new();
                for event in &events {
                    model.happen(event).await;
                }
                while !model.in_flight.is_empty() {
                    model.refuse();
                }
                advance(LONGEST_BACKOFF + Duration::from_secs(2)).await;
                model.observe().await;
                assert_eq!(model.due, [false; PODS]);
            });
        }
    }
}
