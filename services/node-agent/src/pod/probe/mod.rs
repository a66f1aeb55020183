//! Probes: their results by container, and the tasks that execute them.
//!
//! ```text
//! startup ─▶ passed ─▶ readiness and liveness, each in its own period
//!      │                     │             │
//!      └▶ failed: killed     └▶ ready      └▶ failed: killed
//! ```
//! A result changes when as many executions in a row agree as its threshold requires; then the Pod is reconciled.

mod streak;
mod worker;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_proto::core::{Container, Pod};
use setpoint_runtime::{ContainerId, Runtime, Wake};
use setpoint_task::{Panicked, catch_panic};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use self::worker::Worker;
use crate::pod::events::Events;
use crate::pod::handler::Target;
use crate::pod::health::{Health, ProbeKind, ProbeResults};

/// Containers that started longer ago than this when their probes begin were adopted from an earlier process of the
/// agent. Their first executions are spread over a period.
const ADOPTED_AFTER: Duration = Duration::from_secs(10);

/// The probed containers.
#[derive(Default)]
pub struct Probes {
    /// By the uid of their Pods.
    pods: Mutex<HashMap<String, BTreeMap<ContainerId, Probed>>>,
}

struct Probed {
    results: ProbeResults,
    _tasks: Vec<AbortOnDropHandle<Result<(), Panicked>>>,
}

/// A container whose probes are to begin.
pub struct Begin<R> {
    /// The container.
    pub target: Target<R>,
    /// The Pod, for Events.
    pub pod: Arc<Pod>,
    /// The time at which the container started.
    pub since: Timestamp,
    /// The results to begin with: those that were last reported, if an earlier process of the agent has probed it.
    pub results: ProbeResults,
}

impl Probes {
    /// Returns the results of a Pod's probed containers.
    pub fn results(&self, uid: &str) -> BTreeMap<ContainerId, ProbeResults> {
        let pods = self.pods.lock();
        let probed = pods.get(uid).into_iter().flatten();
        probed
            .map(|(id, probed)| (id.clone(), probed.results))
            .collect()
    }

    /// Begins the probes of a running container. They end with the container.
    pub fn begin<R: Runtime>(self: &Arc<Self>, begin: Begin<R>, events: &Events, wake: &Wake) {
        let Begin {
            target,
            pod,
            since,
            results,
        } = begin;
        let id = target.id.clone();
        let startup = ProbeKind::Startup.of(&target.container).is_some();
        let is_started = !startup || results.startup == Health::Passing;
        let started = Arc::new(watch::channel(is_started).0);
        let kinds = [
            ProbeKind::Startup,
            ProbeKind::Readiness,
            ProbeKind::Liveness,
        ];
        let due = kinds
            .into_iter()
            .filter(|kind| *kind != ProbeKind::Startup || !is_started);
        let mut pods = self.pods.lock();
        let probed = pods.entry(id.uid.clone()).or_default();
        let tasks = due.filter_map(|kind| {
            let worker = Worker {
                kind,
                probe: kind.of(&target.container)?.clone(),
                target: target.clone(),
                pod: Arc::clone(&pod),
                since,
                started: Arc::clone(&started),
                probes: Arc::clone(self),
                events: events.clone(),
                wake: Arc::clone(wake),
            };
            let task = tokio::spawn(catch_panic("probe", worker.run()));
            Some(AbortOnDropHandle::new(task))
        });
        let tasks = tasks.collect();
        probed.entry(id).or_insert(Probed {
            results,
            _tasks: tasks,
        });
    }

    /// Ends the probes of one container.
    pub fn forget(&self, id: &ContainerId) {
        if let Some(probed) = self.pods.lock().get_mut(&id.uid) {
            probed.remove(id);
        }
    }

    /// Ends the probes of all containers of a Pod.
    pub fn forget_pod(&self, uid: &str) {
        self.pods.lock().remove(uid);
    }

    /// Sets a result; returns whether it has changed.
    fn set(&self, id: &ContainerId, kind: ProbeKind, health: Health) -> bool {
        let mut pods = self.pods.lock();
        let probed = pods.get_mut(&id.uid).and_then(|pod| pod.get_mut(id));
        probed.is_some_and(|probed| {
            let before = std::mem::replace(probed.results.of(kind), health);
            before != health
        })
    }
}

/// Returns how long to wait before the first execution of the probes of an adopted container, so that an agent that
/// restarts does not probe all of its containers at once. The same container always waits for the same part of its
/// period.
fn spread(id: &ContainerId, running_for: Duration, period: Duration) -> Duration {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    if running_for < ADOPTED_AFTER {
        return Duration::ZERO;
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let part = hasher.finish() % 1000;
    period
        .saturating_mul(u32::try_from(part).unwrap_or_default())
        .checked_div(1000)
        .unwrap_or_default()
}

/// Returns what Events need to know of a Pod.
pub fn subject(pod: &Pod) -> Pod {
    let mut subject = Pod::default();
    subject.metadata.clone_from(&pod.metadata);
    subject.metadata.managed_fields.clear();
    let names = pod.spec.init_containers.iter().map(|container| Container {
        name: container.name.clone(),
        ..Container::default()
    });
    subject.spec.init_containers = names.collect();
    subject
}

/// Returns the key of a Pod.
fn key(pod: &Pod) -> Key {
    Key::of(&pod.metadata)
}

#[cfg(test)]
mod cost;
#[cfg(test)]
mod tests;
