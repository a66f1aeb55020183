//! The network of the Pods of a node, which is ready once the Node has a range of addresses for them.

use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::{Backoff, View as _};
use setpoint_host::Check;
use setpoint_runtime::{Error, Obstacle, Runtime};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::node::Pods;

/// The readiness check of the network.
pub const CHECK: &str = "network";

/// Makes the network for the range of the node. [`CHECK`] passes once it is made. Does not return.
pub async fn keep<R: Runtime>(pods: Arc<Pods<R>>, range: watch::Receiver<String>, check: Check) {
    match pods.runtime.network_ready() {
        Ok(()) => check.pass(),
        Err(why) => check.fail(why.to_string()),
    }
    let told = |range: &str, outcome: Result<(), Error>| match outcome {
        Ok(()) => {
            info!(range, "Pods have a network");
            check.pass();
            pods.state.send_modify(|state| state.obstacle = None);
            pods.all().for_each(|pod| (pods.wake)(&pod.meta().key));
        }
        Err(error) => {
            let why = reason(&error);
            check.fail(why.clone());
            warn!(%why, range, "the network of Pods cannot be made; trying again");
            let obstacle = Obstacle::Network(why);
            pods.state
                .send_modify(|state| state.obstacle = Some(obstacle));
        }
    };
    tell(&pods.runtime, range, told).await;
}

/// Lets the runtime configure its network for the range of the node, which [`follow`] looks at. Does not return.
pub async fn configure<R: Runtime>(pods: Arc<Pods<R>>, range: watch::Receiver<String>) {
    let told = |range: &str, outcome: Result<(), Error>| {
        if let Err(error) = outcome {
            let why = reason(&error);
            warn!(%why, range, "the network of Pods is not configured; trying again");
        }
    };
    tell(&pods.runtime, range, told).await;
}

/// Tells the runtime the range of the node when that is known or changes, and again until it succeeds. `told` is called
/// with each outcome. Does not return.
async fn tell<R: Runtime>(
    runtime: &R,
    mut range: watch::Receiver<String>,
    told: impl Fn(&str, Result<(), Error>),
) {
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
    let mut made = String::new();
    loop {
        let known = range.wait_for(|range| *range != made).await;
        // Cloned at once: nobody can tell another range while this one is borrowed.
        let Ok(wanted) = known.map(|range| range.clone()) else {
            return std::future::pending().await;
        };
        let outcome = runtime.set_pod_range(&wanted).await;
        let has_failed = outcome.is_err();
        told(&wanted, outcome);
        if has_failed {
            tokio::time::sleep(backoff.next_delay()).await;
        } else {
            backoff.reset();
            made = wanted;
        }
    }
}

/// Returns an error with its cause.
fn reason(error: &Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    format!("{error}: {}", cause.unwrap_or_default())
}

/// Interval at which the runtime is looked at, which asks for its own status every five seconds.
const INTERVAL: Duration = Duration::from_secs(1);

/// Follows whether the runtime can connect Pods to its network. [`CHECK`] passes as long as it can. Does not return.
pub async fn follow<R: Runtime>(pods: Arc<Pods<R>>, check: Check) {
    let mut before = None;
    loop {
        let ready = pods.runtime.network_ready();
        if before.as_ref() != Some(&ready) {
            match &ready {
                Ok(()) => check.pass(),
                Err(why) => check.fail(why.to_string()),
            }
            let obstacle = ready.clone().err();
            pods.state.send_modify(|state| state.obstacle = obstacle);
            pods.all().for_each(|pod| (pods.wake)(&pod.meta().key));
            before = Some(ready);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
