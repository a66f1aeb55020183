//! Unschedulable Pods: they wait for a change that may let them fit.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::QueueHandle;
use setpoint_model::Key;
use tokio::time::Instant;

use crate::cluster_event::ClusterEvent;
use crate::plugin::PluginSet;
use crate::plugins;
use crate::pod::PodView;
use crate::profile::Profile;

/// Upstream's `podInitialBackoffSeconds` and `podMaxBackoffSeconds`.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// The longest wait without a change, in case one was not recognized as relevant (upstream:
/// `podMaxInUnschedulablePodsDuration`).
pub const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// The number of changes that are kept while Pods are decided on. Of earlier ones each may have been relevant.
const MOST_CHANGES: usize = 1024;

/// Unschedulable Pods, each with the end of its backoff.
///
/// No wake-up is lost: a change during the decision on a Pod counts when the Pod is added (upstream replays its
/// `inFlightEvents`).
#[derive(Debug, Default)]
pub struct Unschedulable {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of changes so far.
    changes: u64,
    /// The latest changes.
    latest: VecDeque<ClusterEvent>,
    /// Shared with each [`Observed`]: without any, no change needs to be kept.
    in_flight: Arc<()>,
    waiting: HashMap<Key, Wait>,
}

#[derive(Debug)]
struct Wait {
    refusal: Refusal,
    attempts: u32,
    not_before: Instant,
    /// Whether a relevant change came after the observation of its last decision.
    woken: bool,
}

/// The number of changes before the cluster was observed. Changes are kept while one of these lives.
#[derive(Clone, Debug)]
pub struct Observed {
    changes: u64,
    _in_flight: Arc<()>,
}

/// The result of a decision without a node.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The Pod, as it was observed.
    pub pod: Arc<PodView>,
    /// Its profile.
    pub profile: Arc<Profile>,
    /// The time since which the Pod could be scheduled. The first one is kept.
    pub since: Timestamp,
    /// The plugins that rejected it. Without any, no change of nodes or of other Pods can help.
    pub rejectors: PluginSet,
    /// Whether it has a node, and waits for its claims to be bound: without a backoff.
    pub waits: bool,
}

impl Refusal {
    fn is_helped_by(&self, change: &ClusterEvent) -> bool {
        plugins::helps(&self.profile, &self.pod, self.rejectors, change)
    }
}

impl State {
    /// Returns whether a change since the observation may help the Pod.
    fn changed_since(&self, observed: &Observed, refusal: &Refusal) -> bool {
        let changes = self.changes.wrapping_sub(observed.changes);
        let changes = usize::try_from(changes).unwrap_or(usize::MAX);
        match self.latest.len().checked_sub(changes) {
            None => !refusal.rejectors.is_empty(),
            Some(earlier) => {
                let mut since = self.latest.iter().skip(earlier);
                since.any(|change| refusal.is_helped_by(change))
            }
        }
    }

    fn keep(&mut self, change: &ClusterEvent) {
        self.changes = self.changes.wrapping_add(1);
        if Arc::strong_count(&self.in_flight) == 1 {
            self.latest.clear();
            return;
        }
        if self.latest.len() >= MOST_CHANGES {
            self.latest.pop_front();
        }
        self.latest.push_back(change.clone());
    }
}

impl Unschedulable {
    /// Returns the number of changes so far. To be called before the cluster is observed.
    pub fn observed(&self) -> Observed {
        let state = self.state.lock();
        Observed {
            changes: state.changes,
            _in_flight: state.in_flight.clone(),
        }
    }

    /// Adds a Pod that no node fits. If a relevant change came since the observation, it is tried again after its
    /// backoff.
    pub fn add(&self, mut refusal: Refusal, observed: &Observed, queue: &QueueHandle) {
        let key = refusal.pod.meta.key.clone();
        let state = &mut *self.state.lock();
        let former = state.waiting.get(&key);
        let attempts = former.map_or(0, |wait| wait.attempts);
        refusal.since = former.map_or(refusal.since, |wait| wait.refusal.since);
        let (backoff, attempt) = match refusal.waits {
            true => (Duration::ZERO, 0),
            false => (backoff(attempts), 1),
        };
        let woken = state.changed_since(observed, &refusal);
        let wait = Wait {
            refusal,
            attempts: attempts.saturating_add(attempt),
            not_before: Instant::now() + backoff,
            woken,
        };
        state.waiting.insert(key.clone(), wait);
        if woken {
            queue.add_after(key, backoff);
        }
    }

    /// Returns the number of decisions without a node, and the time since which the Pod could be scheduled.
    pub fn attempts(&self, key: &Key) -> Option<(u32, Timestamp)> {
        let state = self.state.lock();
        let wait = state.waiting.get(key);
        wait.map(|wait| (wait.attempts, wait.refusal.since))
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
    pub fn wake(&self, change: &ClusterEvent, queue: &QueueHandle) {
        let state = &mut *self.state.lock();
        state.keep(change);
        let asleep = |wait: &Wait| !wait.woken && wait.refusal.is_helped_by(change);
        let waiting = state.waiting.iter_mut();
        waiting
            .filter(|(_, wait)| asleep(wait))
            .for_each(|(key, wait)| wait.wake(key, queue));
    }

    /// Wakes a Pod.
    pub fn wake_pod(&self, key: &Key, queue: &QueueHandle) {
        let mut state = self.state.lock();
        let wait = state.waiting.get_mut(key).filter(|wait| !wait.woken);
        if let Some(wait) = wait {
            wait.wake(key, queue);
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

impl Wait {
    fn wake(&mut self, key: &Key, queue: &QueueHandle) {
        self.woken = true;
        let rest = self.not_before.saturating_duration_since(Instant::now());
        queue.add_after(key.clone(), rest);
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
    use setpoint_model::Meta;
    use tokio::runtime::Builder;
    use tokio::time::{advance, timeout};

    use super::*;
    use crate::plugin::Plugin;

    /// A Pod that a node had no room for.
    fn refusal(key: &Key) -> Refusal {
        let pod = PodView {
            meta: Meta {
                key: key.clone(),
                ..Meta::default()
            },
            wants: Some(Box::default()),
            ..PodView::default()
        };
        Refusal {
            pod: Arc::new(pod),
            profile: Arc::default(),
            since: Timestamp::UNIX_EPOCH,
            rejectors: [Plugin::NodeResourcesFit].into_iter().collect(),
            waits: false,
        }
    }

    /// A change that makes room.
    fn room() -> ClusterEvent {
        ClusterEvent::left(Arc::default())
    }

    /// A change that makes none.
    fn no_room() -> ClusterEvent {
        ClusterEvent::Pod {
            old: None,
            new: Some(Arc::default()),
        }
    }

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
        pods.add(refusal(&key), &pods.observed(), &handle);
        assert_eq!((queue.delayed(), pods.counts(now)), (0, (0, 1)));
        pods.wake(&no_room(), &handle);
        assert_eq!((queue.delayed(), pods.counts(now)), (0, (0, 1)));
        pods.wake(&room(), &handle);
        assert_eq!(pods.counts(now), (1, 0));
        assert_eq!((queue.len(), queue.delayed()), (0, 1), "it backs off");
        let over = now + FIRST_BACKOFF;
        assert_eq!(pods.counts(over), (0, 0), "it is active");
        pods.add(refusal(&key), &pods.observed(), &handle);
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
            pods.wake(&room(), &handle);
            assert_eq!(pods.counts(Instant::now()), (0, 0), "it is active");
            pods.add(refusal(&key), &observed, &handle);
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
        pods.add(refusal(&key), &pods.observed(), &handle);
        // A decision that was not written has no effect here.
        pods.observed();
        assert_eq!(pods.counts(Instant::now()), (0, 1));
        pods.wake(&room(), &handle);
        assert_eq!(queue.delayed(), 1);
    }

    /// Checks F5: a Pod that no change of nodes or other Pods can help is not woken.
    #[tokio::test(start_paused = true)]
    async fn a_pod_that_no_change_can_help_is_not_woken() {
        let (pods, queue, handle) = start();
        let key = Key::new("default", "web");
        let hopeless = Refusal {
            rejectors: PluginSet::default(),
            ..refusal(&key)
        };
        let observed = pods.observed();
        pods.wake(&room(), &handle);
        pods.add(hopeless, &observed, &handle);
        pods.wake(&room(), &handle);
        assert_eq!(pods.counts(Instant::now()), (0, 1));
        assert_eq!((queue.len(), queue.delayed()), (0, 0));
    }

    /// Checks F3: changes that were not kept count as relevant.
    #[tokio::test(start_paused = true)]
    async fn a_pod_is_tried_again_after_more_changes_than_are_kept() {
        let (pods, queue, handle) = start();
        let key = Key::new("default", "web");
        for (changes, woken) in [(MOST_CHANGES, 0), (MOST_CHANGES + 1, 1)] {
            let observed = pods.observed();
            for _ in 0..changes {
                pods.wake(&no_room(), &handle);
            }
            pods.add(refusal(&key), &observed, &handle);
            assert_eq!(queue.delayed(), woken, "{changes}");
        }
    }

    /// Checks C6: while no Pod is decided on, changes are not kept.
    #[tokio::test(start_paused = true)]
    async fn changes_are_kept_while_pods_are_decided_on() {
        let (pods, _queue, handle) = start();
        let kept = || pods.state.lock().latest.len();
        let observed = pods.observed();
        pods.wake(&room(), &handle);
        assert_eq!(kept(), 1);
        drop(observed);
        pods.wake(&room(), &handle);
        assert_eq!(kept(), 0);
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
        /// A Pod leaves a node, which matters to all.
        Wake,
        /// A Pod gets a node, which matters to none.
        Bound,
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
            Just(Event::Bound),
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
                    self.pods.wake(&room(), &self.handle);
                    self.due = [true; PODS];
                }
                Event::Bound => self.pods.wake(&no_room(), &self.handle),
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
                self.in_flight.push((ticket, observed.clone()));
            }
        }

        fn refuse(&mut self) {
            if !self.in_flight.is_empty() {
                let (ticket, observed) = self.in_flight.remove(0);
                let refusal = refusal(&ticket.key);
                self.pods.add(refusal, &observed, &self.handle);
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
