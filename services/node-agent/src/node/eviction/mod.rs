//! Evicts Pods when the node is short of memory, disk space or inodes, and Pods that hold more disk space than they
//! may, as the kubelet's eviction manager does.
//!
//! ```text
//! observe ─▶ thresholds ─▶ conditions of the node
//!                 └▶ due: remove unused images ─▶ still due: end one Pod ─▶ wait until it has stopped ─▶ observe
//! measure the Pods with limits ─▶ end each that exceeds one
//! ```

mod enforce;
mod limits;
mod pressure;
mod signals;
mod threshold;
mod usage;
mod victim;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use setpoint_controller::{Recorder, View as _, events};
use setpoint_model::Key;
use setpoint_proto::core::{self, Pod};
use tokio::time::sleep;
use tracing::{info, warn};

pub use self::pressure::Observation;
use self::pressure::{Assessment, Observations, assess};
pub use self::signals::{FileSystems, disk, machine_memory};
pub use self::threshold::Settings;
use self::threshold::{Signal, Threshold};
use self::usage::{Usage, candidate};
use self::victim::{Candidate, choose, message};
use crate::node::usage::Meter;
use crate::node::{Pods, Pressure};
use crate::pod::ending::Ending;
use crate::pod::rejection::EVICTED;
use setpoint_runtime::Runtime;

/// Interval between two observations.
const INTERVAL: Duration = Duration::from_secs(10);
/// Grace period of a Pod that a hard threshold evicts.
const IMMEDIATE: Duration = Duration::from_secs(1);
/// Maximum time that an evicted Pod is waited for, and the interval in which it is looked at.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(30);
const CLEANUP_INTERVAL: Duration = Duration::from_millis(250);

/// Returns what is available of the resources of a node.
pub type Observe = Arc<dyn Fn() -> Observations + Send + Sync>;

/// Evicts the Pods of one node.
pub struct Manager<R> {
    /// The Pods of the node.
    pub pods: Arc<Pods<R>>,
    /// Measures what Pods use.
    pub meter: Arc<Meter<R>>,
    /// Records Events about the node and its Pods.
    pub events: Recorder,
    /// The node, for Events.
    pub about: core::Node,
    /// Settings of eviction.
    pub settings: Settings,
    /// The thresholds that the settings state.
    pub thresholds: Vec<Threshold>,
    /// Observes the node.
    pub observe: Observe,
    /// Minimum age of unused images that are removed.
    pub image_age: Duration,
}

impl<R: Runtime> Manager<R> {
    /// Observes the node and evicts its Pods, one at a time, until dropped.
    pub async fn run(&self) {
        let mut assessment = Assessment::default();
        loop {
            assessment = self.assess(&assessment);
            self.publish(&assessment);
            match self.reclaim(&assessment).await {
                Some((key, uid)) => self.wait_for_end(&key, &uid).await,
                None => sleep(INTERVAL).await,
            }
        }
    }

    fn assess(&self, before: &Assessment) -> Assessment {
        let transition = self.settings.pressure_transition_period;
        assess(
            before,
            &self.thresholds,
            &(self.observe)(),
            transition,
            Instant::now(),
        )
    }

    /// Sets the conditions of the node.
    fn publish(&self, assessment: &Assessment) {
        let pressures = &assessment.pressures;
        self.pods.state.send_if_modified(|state| {
            let changed = state.pressures != *pressures;
            if changed {
                info!(
                    ?pressures,
                    "the resources that the node is short of have changed"
                );
                state.pressures.clone_from(pressures);
            }
            changed
        });
    }

    /// Removes unused images if a disk is full, or else ends a Pod. Returns the Pod.
    async fn reclaim(&self, assessment: &Assessment) -> Option<(Key, String)> {
        let threshold = assessment.due.first()?;
        let resource = threshold.signal.resource();
        warn!(
            signal = threshold.signal.name(),
            "attempting to reclaim {resource}"
        );
        let about = events::reference_to(&self.about);
        self.events.warning(
            &about,
            "EvictionThresholdMet",
            format!("Attempting to reclaim {resource}"),
        );
        if threshold.signal.pressure() == Pressure::Disk {
            let runtime = &self.pods.runtime;
            runtime.remove_images(u64::MAX, self.image_age).await;
            if !self.assess(assessment).due.contains(threshold) {
                return None;
            }
        }
        let observed = *(self.observe)().get(&threshold.signal)?;
        let pods: Vec<_> = self.running().collect();
        let candidates = self.candidates(threshold.signal, &pods).await;
        let Some(victim) = choose(&candidates) else {
            warn!("no Pod can be evicted");
            return None;
        };
        let pod = pods.iter().find(|pod| pod.metadata.uid == victim.uid)?;
        let grace = match threshold.grace {
            Some(_) => self.settings.max_pod_grace_period.max(IMMEDIATE),
            None => IMMEDIATE,
        };
        let message = message(threshold, observed, victim);
        Some(self.evict(pod, grace, message, true))
    }

    /// Ends a Pod. A Pod that `disrupts` is one that ends for the sake of others.
    fn evict(&self, pod: &Pod, grace: Duration, message: String, disrupts: bool) -> (Key, String) {
        let (key, uid) = (Key::of(&pod.metadata), pod.metadata.uid.clone());
        warn!(%key, message, "evicting the Pod");
        self.events
            .warning(&events::reference_to(pod), EVICTED, message.clone());
        let ending = Ending {
            reason: EVICTED,
            message,
            grace,
            disrupts,
            since: Timestamp::now(),
        };
        self.pods.end(&key, &uid, ending);
        (key, uid)
    }

    /// Returns the Pods with containers that have not stopped, and that do not end yet. Static Pods are not among them:
    /// they are critical to the node.
    fn running(&self) -> impl Iterator<Item = Pod> {
        let active = self.pods.active().filter(|view| {
            let meta = view.meta();
            !view.is_static()
                && self.pods.endings.get(&meta.uid).is_none()
                && self.runs(&meta.key, &meta.uid)
        });
        active.map(|view| view.pod())
    }

    fn runs(&self, key: &Key, uid: &str) -> bool {
        let own = self.pods.sandbox(key, uid);
        own.is_some_and(|sandbox| sandbox.alive().next().is_some())
    }

    /// Waits until a Pod has stopped, but not forever.
    async fn wait_for_end(&self, key: &Key, uid: &str) {
        let until = Instant::now() + CLEANUP_TIMEOUT;
        while self.runs(key, uid) && Instant::now() < until {
            sleep(CLEANUP_INTERVAL).await;
        }
    }

    async fn candidates(&self, signal: Signal, pods: &[Pod]) -> Vec<Candidate> {
        let usage = match signal.pressure() {
            Pressure::Memory => self.memory().await,
            Pressure::Disk => self.disk(signal, pods).await,
        };
        let resource = signal.resource();
        let candidate = |pod: &Pod| candidate(pod, resource, usage.get(&pod.metadata.uid));
        pods.iter().map(candidate).collect()
    }

    async fn memory(&self) -> HashMap<String, Usage> {
        self.meter.read().await;
        let usage = self.meter.usage().into_iter();
        usage
            .map(|pod| (pod.uid.clone(), Usage::of_memory(pod)))
            .collect()
    }

    async fn disk(&self, signal: Signal, pods: &[Pod]) -> HashMap<String, Usage> {
        let uids = pods.iter().map(|pod| pod.metadata.uid.clone()).collect();
        let held = self.meter.measure_disk(uids).await;
        let usage = pods.iter().filter_map(|pod| {
            let uid = &pod.metadata.uid;
            let usage = Usage::of_disk(signal, held.get(uid)?, &pod.spec);
            Some((uid.clone(), usage))
        });
        usage.collect()
    }
}
