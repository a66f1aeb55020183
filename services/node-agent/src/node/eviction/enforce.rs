//! Ends Pods that hold more space than their specs allow.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use setpoint_proto::core::Pod;
use setpoint_runtime::Runtime;
use tokio::time::sleep;

use super::{IMMEDIATE, Manager, limits};
use crate::node::CRITICAL;

/// Minimum interval between two measurements.
const INTERVAL: Duration = Duration::from_secs(10);
/// The interval in multiples of the time that a measurement takes.
const THRIFT: u32 = 50;

impl<R: Runtime> Manager<R> {
    /// Measures the Pods with limits at intervals and ends those that exceed them, until dropped.
    pub async fn enforce_limits(&self) {
        loop {
            let begun = Instant::now();
            self.enforce().await;
            sleep(begun.elapsed().saturating_mul(THRIFT).max(INTERVAL)).await;
        }
    }

    async fn enforce(&self) {
        let limited = |pod: &Pod| {
            limits::has_any(&pod.spec) && pod.spec.priority.unwrap_or_default() < CRITICAL
        };
        let pods: Vec<_> = self.running().filter(limited).collect();
        if pods.is_empty() {
            return;
        }
        let uids: HashSet<_> = pods.iter().map(|pod| pod.metadata.uid.clone()).collect();
        let held = self.meter.measure_disk(uids).await;
        for pod in &pods {
            let held = held.get(&pod.metadata.uid);
            let message = held.and_then(|held| limits::exceeded(&pod.spec, held));
            if let Some(message) = message {
                self.evict(pod, IMMEDIATE, message, false);
            }
        }
    }
}
