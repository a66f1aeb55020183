//! Everything that a decision about one Pod may look at.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use setpoint_model::pod as model;
use setpoint_model::time::seconds_after;
use setpoint_proto::core::{Container, ContainerStatus, Pod};
use setpoint_proto::meta::Quantity;

use crate::ledger::Admission;
use crate::restart::{Ended, Policy};
use crate::runtime::{self, Sandbox, State};
use crate::status::status;

/// How long containers get to stop, unless their Pod says.
const GRACE: Duration = Duration::from_secs(30);

/// The exit code of a container that nobody saw ending.
pub const LOST: i32 = 137;

/// A Pod, wanted and real, at one moment.
#[derive(Clone, Debug)]
pub struct World {
    /// The moment.
    pub now: Timestamp,
    /// The moment by a clock that nobody sets.
    pub instant: Instant,
    /// The Pod as the gateway knows it; `None` once it is gone, or is on another node.
    pub pod: Option<Bound>,
    /// What the runtime has under its name, whichever Pod of that name it is of.
    pub sandboxes: Vec<Sandbox>,
    /// Containers that could not be started, and why, by name.
    pub troubles: BTreeMap<String, Trouble>,
}

/// A Pod that is bound to a node of this agent.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The object.
    pub object: Pod,
    /// The address of its node.
    pub host_ip: String,
    /// What its node has to give, by the names of resources.
    pub allocatable: Arc<BTreeMap<String, Quantity>>,
    /// Its place on the node, or why it has none.
    pub admission: Admission,
    /// The name of the runtime, for container ids.
    pub runtime: &'static str,
}

/// Why a container waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Trouble {
    /// One word.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

impl Trouble {
    /// What a container's configuration cannot be made of.
    pub fn config(message: String) -> Self {
        let reason = "CreateContainerConfigError";
        Self { reason, message }
    }
}

/// How far the attempts at one container have come.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// The number of the next attempt.
    pub next: u32,
    /// The newest attempt.
    pub last: Last,
}

/// The newest attempt at a container.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Last {
    /// There is none.
    Never,
    /// It has not begun yet.
    Starting,
    /// It runs.
    Running,
    /// It ended.
    Ended(Ended),
}

impl World {
    /// Is the Pod where it was to be: ready, ended, or gone? Until then what its containers do is what it was asked to.
    pub fn is_settled(&self) -> bool {
        let Some(bound) = &self.pod else {
            return self.sandboxes.is_empty();
        };
        let mut pod = Pod {
            metadata: bound.object.metadata.clone(),
            status: bound.object.status.clone(),
            ..Pod::default()
        };
        if let Some(status) = status(self) {
            pod.status = status;
        }
        let ending = pod.metadata.deletion_timestamp.is_some();
        !ending && (model::is_ready(&pod) || model::is_terminal(&pod))
    }

    /// The sandbox of the Pod itself.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        let uid = &self.pod.as_ref()?.object.metadata.uid;
        self.sandboxes
            .iter()
            .find(|sandbox| sandbox.config.uid == *uid)
    }

    /// Sandboxes of other Pods that had its name.
    pub fn strangers(&self) -> impl Iterator<Item = &Sandbox> {
        let uid = self
            .pod
            .as_ref()
            .map(|pod| pod.object.metadata.uid.as_str());
        self.sandboxes
            .iter()
            .filter(move |sandbox| Some(sandbox.config.uid.as_str()) != uid)
    }

    /// The past of a container: what the runtime knows, else what was last reported.
    ///
    /// The two part when the runtime forgot, as when the machine lost its disk: what ran then counts as lost.
    pub fn past(&self, name: &str) -> Past {
        let known = self.sandbox().and_then(|sandbox| sandbox.latest(name));
        match (known, self.reported(name)) {
            (Some(container), _) => Past {
                next: container.id.attempt.saturating_add(1),
                last: Last::of(container),
            },
            (None, Some(status)) if !status.container_id.is_empty() => Past {
                next: u32::try_from(status.restart_count)
                    .unwrap_or_default()
                    .saturating_add(1),
                last: Last::reported(status, self.now),
            },
            _ => Past {
                next: 0,
                last: Last::Never,
            },
        }
    }

    /// How a container fares in the sandbox as it is: what it did in one that was lost counts no more.
    pub fn present(&self, name: &str) -> Last {
        let sandbox = self.sandbox();
        let latest = sandbox.and_then(|sandbox| Some((sandbox, sandbox.latest(name)?)));
        match latest {
            Some((sandbox, latest)) if latest.sandbox == sandbox.id => Last::of(latest),
            _ => Last::Never,
        }
    }

    /// What was last reported of a container.
    pub fn reported(&self, name: &str) -> Option<&ContainerStatus> {
        let status = &self.pod.as_ref()?.object.status;
        let mut all = status
            .init_container_statuses
            .iter()
            .chain(&status.container_statuses);
        all.find(|status| status.name == name)
    }
}

impl Last {
    fn of(container: &runtime::Container) -> Self {
        match &container.state {
            State::Starting => Self::Starting,
            State::Running { .. } => Self::Running,
            State::Exited(exit) => Self::Ended(Ended {
                code: exit.code,
                started: exit.started,
                finished: exit.finished,
                noticed: exit.noticed,
                backoff: container.backoff,
            }),
        }
    }

    fn reported(status: &ContainerStatus, now: Timestamp) -> Self {
        let terminated = [&status.state, &status.last_state]
            .into_iter()
            .find_map(|state| state.terminated.as_ref())
            .filter(|_| status.state.running.is_none());
        let time = |time: &setpoint_proto::meta::Time| time.timestamp().unwrap_or(now);
        Self::Ended(Ended {
            code: terminated.map_or(LOST, |end| end.exit_code),
            started: terminated.map_or(now, |end| time(&end.started_at)),
            finished: terminated.map_or(now, |end| time(&end.finished_at)),
            noticed: None,
            backoff: Duration::ZERO,
        })
    }
}

impl Bound {
    /// May its containers start: have all init containers done their part in this sandbox?
    pub fn initialized(&self, world: &World) -> bool {
        let spec = &self.object.spec;
        let begun = |container: &Container| world.present(&container.name) != Last::Never;
        let through = |container: &Container| self.is_through(world, container);
        spec.containers.iter().any(begun)
            || spec.init_containers.iter().all(through)
            || self.is_over(world)
    }

    /// Have all its containers ended, never to start again?
    fn is_over(&self, world: &World) -> bool {
        let spec = &self.object.spec;
        let policy = Policy::of(spec);
        let over = |container: &Container| match world.past(&container.name).last {
            Last::Ended(ended) => !policy.restarts(ended.code),
            _ => false,
        };
        spec.containers.iter().all(over)
    }

    /// Has this init container done its part?
    pub fn is_through(&self, world: &World, container: &Container) -> bool {
        match world.present(&container.name) {
            Last::Running => crate::restart::is_sidecar(container),
            Last::Ended(ended) => ended.code == 0 && !crate::restart::is_sidecar(container),
            Last::Never | Last::Starting => false,
        }
    }

    /// Returns how much is left of its `activeDeadlineSeconds`, zero if they are over; `None` without a deadline, or
    /// before the Pod's start was reported.
    pub fn active_left(&self, now: Timestamp) -> Option<Duration> {
        let seconds = self.object.spec.active_deadline_seconds?;
        let started = self.object.status.start_time?.timestamp()?;
        let left = seconds_after(started, seconds).duration_since(now);
        Some(Duration::try_from(left).unwrap_or_default())
    }

    /// Has it been active for longer than it may? Its containers stop then, for good.
    pub fn is_past_deadline(&self, now: Timestamp) -> bool {
        self.active_left(now).is_some_and(|left| left.is_zero())
    }

    /// Do its containers stop, never to start again: is it being deleted, or past its deadline?
    pub fn is_ending(&self, now: Timestamp) -> bool {
        self.is_deleting() || self.is_past_deadline(now)
    }

    /// How long its containers get to stop if nobody deletes it.
    pub fn termination_grace(&self) -> Duration {
        let grace = self.object.spec.termination_grace_period_seconds;
        grace.map_or(GRACE, at_least_a_second)
    }

    /// Has its deletion begun?
    pub fn is_deleting(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// How long its containers still get to stop.
    ///
    /// The deadline on the object has whole seconds: one more makes sure that nobody gets less than they were promised.
    pub fn grace(&self, now: Timestamp) -> Duration {
        let meta = &self.object.metadata;
        let promised = meta.deletion_grace_period_seconds.unwrap_or_default();
        let promised = at_least_a_second(promised);
        let deadline = meta
            .deletion_timestamp
            .as_ref()
            .and_then(|time| time.timestamp());
        let left = deadline.map_or(promised, |deadline| {
            let left = Duration::try_from(deadline.duration_since(now));
            left.map_or(Duration::ZERO, |left| {
                left.saturating_add(Duration::from_secs(1))
            })
        });
        left.min(promised)
    }
}

/// Returns a grace period as the kubelet applies it: negative numbers and zero count as one second.
pub fn at_least_a_second(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default().max(1))
}
