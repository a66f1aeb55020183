//! The disk space that Pods hold, as it was last measured.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use setpoint_runtime::Runtime;
use tokio::sync::Mutex;

use super::{Held, Meter, by_pod};

/// The time for which a measurement is used again (upstream's `volumeStatsAggPeriod`).
const FRESH: Duration = Duration::from_secs(60);

/// The sizes of the files of Pods, by the uid of the Pod.
pub type Measured = HashMap<String, (Timestamp, Held)>;

/// The last measurement of each Pod.
#[derive(Default)]
pub struct Disks {
    /// Held while Pods are measured, so that concurrent requests share the result.
    last: Mutex<HashMap<String, (Instant, Timestamp, Held)>>,
}

impl<R: Runtime> Meter<R> {
    /// Measures what the Pods with these uids hold.
    pub async fn measure_disk(&self, pods: HashSet<String>) -> HashMap<String, Held> {
        let measured = by_pod(self.pods.runtime.disk_usage(pods).await);
        // Without waiting for requests, which may be measuring all Pods.
        if let Ok(mut last) = self.disks.last.try_lock() {
            remember(&mut last, &measured);
        }
        measured
    }

    /// Returns what the Pods with these uids hold, measured within the last minute.
    pub async fn disk(&self, pods: &HashSet<String>) -> Measured {
        let mut last = self.disks.last.lock().await;
        last.retain(|uid, (at, _, _)| pods.contains(uid) && at.elapsed() < FRESH);
        let stale: HashSet<_> = pods
            .iter()
            .filter(|uid| !last.contains_key(*uid))
            .cloned()
            .collect();
        if !stale.is_empty() {
            let measured = by_pod(self.pods.runtime.disk_usage(stale).await);
            remember(&mut last, &measured);
        }
        let known = last.iter();
        known
            .map(|(uid, (_, time, held))| (uid.clone(), (*time, held.clone())))
            .collect()
    }
}

fn remember(
    last: &mut HashMap<String, (Instant, Timestamp, Held)>,
    measured: &HashMap<String, Held>,
) {
    let (at, time) = (Instant::now(), Timestamp::now());
    let new = measured.iter();
    last.extend(new.map(|(uid, held)| (uid.clone(), (at, time, held.clone()))));
}
