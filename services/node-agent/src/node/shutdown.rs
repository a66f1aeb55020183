//! Ends the Pods of a node that shuts down, in the order of their priority, as the kubelet's graceful node shutdown
//! does.
//!
//! ```text
//! SIGTERM ─▶ the node is not ready and admits no Pods ─▶ Pods end ─▶ critical Pods end ─▶ the agent ends
//!                                         at most: shutdown_grace_period - critical   critical
//! ```

use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::View as _;
use setpoint_model::Key;
use setpoint_runtime::Runtime;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::node::{CRITICAL, Pods};
use crate::pod::ending::Ending;

/// The kubelet's reason and message for a Pod that ends because its node shuts down.
const REASON: &str = "Terminated";
const MESSAGE: &str = "Pod was terminated in response to imminent node shutdown.";
/// The interval in which the Pods that end are looked at.
const INTERVAL: Duration = Duration::from_millis(100);

/// The time that the Pods of a node have to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GracePeriods {
    /// For all Pods; zero if Pods go on when the agent ends.
    pub total: Duration,
    /// The part of `total` for critical Pods, which end after the others.
    pub critical: Duration,
}

/// A Pod of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    key: Key,
    uid: String,
    priority: i32,
}

/// Returns the Pods in the order in which they end, each group with the time that it has.
fn order(periods: GracePeriods, pods: Vec<Member>) -> [(Duration, Vec<Member>); 2] {
    let (critical, others) = pods.into_iter().partition(|pod| pod.priority >= CRITICAL);
    let ordinary = periods.total.saturating_sub(periods.critical);
    [(ordinary, others), (periods.critical, critical)]
}

/// Ends all Pods of the nodes; returns when they have ended, or their time is over.
pub async fn end_pods<R: Runtime>(pods: &Pods<R>, periods: GracePeriods) {
    pods.state.send_modify(|state| state.shutting_down = true);
    for (grace, group) in order(periods, members(pods)) {
        info!(
            pods = group.len(),
            ?grace,
            "ending Pods, since the node shuts down"
        );
        for pod in &group {
            let ending = Ending {
                disrupts: true,
                reason: REASON,
                message: MESSAGE.to_owned(),
                grace,
                since: Timestamp::now(),
            };
            pods.end(&pod.key, &pod.uid, ending);
        }
        let ended = async {
            while group.iter().any(|pod| pods.is_active(&pod.key, &pod.uid)) {
                sleep(INTERVAL).await;
            }
        };
        if timeout(grace, ended).await.is_err() {
            warn!("not all Pods have ended in time");
        }
    }
}

fn members<R: Runtime>(pods: &Pods<R>) -> Vec<Member> {
    let member = pods.active().map(|view| Member {
        key: view.meta().key.clone(),
        uid: view.meta().uid.clone(),
        priority: view.pod().spec.priority.unwrap_or_default(),
    });
    member.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_pods_end_after_the_others_in_a_part_of_the_time() {
        let member = |name: &str, priority| Member {
            key: Key::new("a", name),
            uid: name.into(),
            priority,
        };
        let seconds = Duration::from_secs;
        let periods = GracePeriods {
            total: seconds(30),
            critical: seconds(10),
        };
        let pods = vec![
            member("dns", CRITICAL),
            member("web", 0),
            member("db", CRITICAL - 1),
        ];
        let [first, last] = order(periods, pods);
        let names = |group: &[Member]| group.iter().map(|pod| pod.uid.clone()).collect::<Vec<_>>();
        assert_eq!(
            (first.0, names(&first.1)),
            (seconds(20), vec!["web".into(), "db".into()])
        );
        assert_eq!((last.0, names(&last.1)), (seconds(10), vec!["dns".into()]));
    }
}
