//! The task of one probe of one container.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_proto::core::{Pod, Probe};
use setpoint_runtime::{Runtime, State, Wake};
use setpoint_task::next_tick;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::streak::Streak;
use super::{Probes, key, spread};
use crate::pod::events::Events;
use crate::pod::handler::{Outcome, Target};
use crate::pod::health::{Health, ProbeKind};

/// All probes but the first of a container are executed at multiples of this time.
const TICK: Duration = Duration::from_millis(100);
/// The number of attempts at an execution that fails on the node.
const ATTEMPTS: usize = 3;

pub struct Worker<R> {
    pub kind: ProbeKind,
    pub probe: Probe,
    pub target: Target<R>,
    pub pod: Arc<Pod>,
    /// The time at which the container started.
    pub since: Timestamp,
    /// Whether the container's startup probe has passed, or it has none.
    pub started: Arc<watch::Sender<bool>>,
    pub probes: Arc<Probes>,
    pub events: Events,
    pub wake: Wake,
}

impl<R: Runtime> Worker<R> {
    /// Executes the probe in its period until the container ends, or until its result is final: a startup probe's first
    /// one, or a failure of a liveness probe, after which the container is killed.
    pub async fn run(self) {
        let period = seconds(self.probe.period_seconds).max(Duration::from_secs(1));
        if self.kind != ProbeKind::Startup {
            // Cannot fail: this task has a sender.
            let _ = self.started.subscribe().wait_for(|started| *started).await;
        }
        sleep(self.first_delay(period)).await;
        let mut streak = Streak::default();
        let mut due = Instant::now();
        loop {
            sleep_until(due).await;
            due = next_tick((due + period).max(Instant::now()), TICK);
            if !self.goes_on() {
                return;
            }
            // Boxed: a probe that waits, as most do, needs no room for its execution.
            let Some(passed) = Box::pin(self.execute()).await else {
                continue;
            };
            if let Some(health) = streak.add(passed, &self.probe) {
                self.record(health);
                if self.is_final(health) {
                    return;
                }
            }
        }
    }

    fn first_delay(&self, period: Duration) -> Duration {
        let running_for = Timestamp::now().duration_since(self.since);
        let running_for = Duration::try_from(running_for).unwrap_or_default();
        let delay = seconds(self.probe.initial_delay_seconds).saturating_sub(running_for);
        delay.saturating_add(spread(&self.target.id, running_for, period))
    }

    /// Returns whether the container still runs. One that is being stopped is only asked whether it is ready.
    fn goes_on(&self) -> bool {
        match self.target.runtime.state(&self.target.id) {
            Some(State::Running { stopping: None, .. }) => true,
            Some(State::Running { .. }) => self.kind == ProbeKind::Readiness,
            _ => false,
        }
    }

    /// Executes the probe once; returns whether the container passed, or `None` if it could not be executed.
    async fn execute(&self) -> Option<bool> {
        let limit = seconds(self.probe.timeout_seconds).max(Duration::from_secs(1));
        let name = self.target.container.name.as_str();
        let mut outcome = Err(String::new());
        for _ in 0..ATTEMPTS {
            outcome = self.target.probe(&self.probe.handler, limit).await;
            if outcome.is_ok() {
                break;
            }
        }
        if !self.goes_on() {
            // It was stopped meanwhile, which is no failure of the container.
            return None;
        }
        match outcome {
            Ok(Outcome::Success) => Some(true),
            Ok(Outcome::Warning(remark)) => {
                self.events
                    .probe_warning(&self.pod, name, self.kind, &remark);
                Some(true)
            }
            Ok(Outcome::Failure(why)) => {
                self.events.unhealthy(&self.pod, name, self.kind, &why);
                Some(false)
            }
            Err(why) => {
                self.events.probe_errored(&self.pod, name, self.kind, &why);
                None
            }
        }
    }

    fn record(&self, health: Health) {
        if !self.probes.set(&self.target.id, self.kind, health) {
            return;
        }
        if (self.kind, health) == (ProbeKind::Startup, Health::Passing) {
            self.started.send_replace(true);
        }
        (self.wake)(&key(&self.pod));
    }

    fn is_final(&self, health: Health) -> bool {
        match self.kind {
            ProbeKind::Startup => true,
            ProbeKind::Liveness => health == Health::Failing,
            ProbeKind::Readiness => false,
        }
    }
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}
