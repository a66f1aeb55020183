//! The load during faults: a Deployment in its own namespace that is scaled and rolled continuously. It records which
//! writes were acknowledged, to detect lost ones.

use std::time::Duration;

use anyhow::{anyhow, bail};
use serde_json::{Value, json};
use setpoint_controller::Client;
use setpoint_controller::client::{ListOptions, Preconditions};
use setpoint_model::Key;
use setpoint_model::volume::{RUNTIME, SIMULATED};
use setpoint_proto::apps::Deployment;
use setpoint_proto::core::{ConfigMap, Namespace, Node};
use setpoint_proto::{ApiError, Reason};
use tokio::time::{sleep, timeout};

use super::observer::Observer;

/// The namespace of the load; it is deleted afterwards with all its objects.
pub const NAMESPACE: &str = "setpoint-chaos";
/// The Deployment's name.
const NAME: &str = "load";
/// Annotation of the Deployment with the number of its last step.
const STEP_ANNOTATION: &str = "setpoint.dev/chaos-step";
/// Number of Pods at the start of a round, and the maximum during a round.
const MIN_PODS: u64 = 3;
const MAX_PODS: u64 = 9;
/// The maximum of a heavy load.
const MAX_PODS_HEAVY: u64 = 60;
/// Number of steps from the minimum to the maximum.
const SCALE_STEPS: u64 = 6;
/// Pauses between two steps, short enough that work is always in progress. Simulated containers start faster.
const SIMULATED_PAUSE: Duration = Duration::from_millis(60);
const REAL_PAUSE: Duration = Duration::from_millis(250);
/// The Pod template changes once in this many steps.
const STEPS_PER_ROLLOUT: u64 = 3;
/// Time for the load to settle, and for its namespace to be deleted.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Interval between two attempts to delete the namespace.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The load and its acknowledged writes: the created ConfigMaps, and the last step of the Deployment.
pub struct Load {
    gateway: Client,
    simulated: bool,
    max_pods: u64,
    tried: u64,
    scaled: u64,
    step: u64,
    created: Vec<String>,
}

impl Load {
    /// Creates a load. Its Pods run on simulated nodes if the cluster has some.
    ///
    /// # Errors
    /// If the nodes cannot be listed.
    pub async fn new(gateway: &Client) -> Result<Self, ApiError> {
        let simulated = ListOptions {
            labels: format!("{RUNTIME}={SIMULATED}"),
            ..ListOptions::default()
        };
        let simulated = gateway.list::<Node>(&simulated).await?;
        Ok(Self {
            gateway: gateway.clone(),
            simulated: !simulated.items.is_empty(),
            max_pods: MAX_PODS,
            tried: 0,
            scaled: 0,
            step: 0,
            created: Vec::new(),
        })
    }

    /// Raises the maximum number of Pods, so that a controller has writes in progress at any time.
    #[must_use]
    pub fn heavy(self) -> Self {
        Self {
            max_pods: MAX_PODS_HEAVY,
            ..self
        }
    }

    /// Creates the objects, after deleting those of an earlier run.
    pub async fn prepare(&self) -> anyhow::Result<()> {
        self.remove().await?;
        let mut namespace = Namespace::default();
        NAMESPACE.clone_into(&mut namespace.metadata.name);
        self.gateway.create(&namespace).await?;
        let deployment: Deployment = serde_json::from_value(deployment(self.simulated))?;
        self.gateway.create(&deployment).await?;
        Ok(())
    }

    /// Performs steps until it is cancelled. Errors are ignored: a failed write is not acknowledged.
    pub async fn run(&mut self) {
        let pause = if self.simulated {
            SIMULATED_PAUSE
        } else {
            REAL_PAUSE
        };
        loop {
            self.tried += 1;
            self.scaled += 1;
            let _ = self.create().await;
            let _ = self.patch().await;
            sleep(pause).await;
        }
    }

    /// Scales down to the minimum and waits until the load has settled.
    pub async fn reset(&mut self, observer: &Observer) -> anyhow::Result<()> {
        self.tried += 1;
        self.scaled = 0;
        self.patch().await?;
        self.settle(observer).await
    }

    /// Waits until the Deployment is rolled out and the number of Pods is right.
    pub async fn settle(&self, observer: &Observer) -> anyhow::Result<()> {
        let settled = observer.until(|observer| self.is_settled(observer));
        let settled = timeout(SETTLE_TIMEOUT, settled).await;
        settled.map_err(|_| anyhow!("the load has not settled within {SETTLE_TIMEOUT:?}"))
    }

    fn is_settled(&self, observer: &Observer) -> bool {
        let Some(view) = observer.deployment(&key()) else {
            return false;
        };
        let (spec, status) = (&view.object.spec, &view.object.status);
        let wanted = spec.replicas.unwrap_or(1);
        let numbers = [
            status.replicas,
            status.updated_replicas,
            status.available_replicas,
        ];
        step_of(&view.object) >= self.step
            && status.observed_generation >= view.object.metadata.generation
            && numbers.iter().all(|number| *number == wanted)
            && i32::try_from(observer.active()) == Ok(wanted)
    }

    /// Returns the number of acknowledged writes.
    pub fn acknowledged(&self) -> usize {
        self.created.len() + usize::try_from(self.step).unwrap_or_default()
    }

    /// Returns the number of acknowledged writes that the store does not contain any more.
    pub async fn lost(&self) -> anyhow::Result<usize> {
        let within = ListOptions {
            namespace: NAMESPACE.to_owned(),
            ..ListOptions::default()
        };
        let listed = self.gateway.list::<ConfigMap>(&within).await?;
        let there: Vec<_> = listed.items.iter().map(|map| &map.metadata.name).collect();
        let gone = self.created.iter().filter(|name| !there.contains(name));
        let deployment = self.gateway.get::<Deployment>(&key()).await?;
        let undone = step_of(&deployment) < self.step;
        Ok(gone.count() + usize::from(undone))
    }

    /// Deletes the namespace and waits until it is gone.
    pub async fn remove(&self) -> anyhow::Result<()> {
        let key = Key::new("", NAMESPACE);
        let removing = async {
            loop {
                let deleted =
                    self.gateway
                        .delete::<Namespace>(&key, Preconditions::default(), None);
                match deleted.await {
                    Err(error) if error.reason == Reason::NotFound => return,
                    // Deletion is in progress, or no gateway is available at the moment.
                    _ => sleep(POLL_INTERVAL).await,
                }
            }
        };
        match timeout(SETTLE_TIMEOUT, removing).await {
            Ok(()) => Ok(()),
            Err(_) => bail!(
                "the namespace {NAMESPACE} is not gone after {SETTLE_TIMEOUT:?}: kubectl delete namespace {NAMESPACE}"
            ),
        }
    }

    async fn create(&mut self) -> Result<(), ApiError> {
        let mut map = ConfigMap::default();
        NAMESPACE.clone_into(&mut map.metadata.namespace);
        map.metadata.name = format!("step-{}", self.tried);
        self.gateway.create(&map).await?;
        self.created.push(map.metadata.name);
        Ok(())
    }

    async fn patch(&mut self) -> Result<(), ApiError> {
        let patch = patch(self.tried, self.scaled, self.max_pods);
        self.gateway.patch::<Deployment>(&key(), "", patch).await?;
        self.step = self.tried;
        Ok(())
    }
}

fn key() -> Key {
    Key::new(NAMESPACE, NAME)
}

fn step_of(deployment: &Deployment) -> u64 {
    let step = deployment.metadata.annotations.get(STEP_ANNOTATION);
    step.and_then(|step| step.parse().ok()).unwrap_or_default()
}

/// Returns the patch of a step: the number of Pods for `scaled` steps since the reset, and the Pod template for `step`.
fn patch(step: u64, scaled: u64, max_pods: u64) -> Value {
    let replicas = max_pods.min(MIN_PODS + scaled * (max_pods - MIN_PODS) / SCALE_STEPS);
    let roll = (step / STEPS_PER_ROLLOUT).to_string();
    json!({
        "metadata": {"annotations": {STEP_ANNOTATION: step.to_string()}},
        "spec": {
            "replicas": replicas,
            "template": {"metadata": {"annotations": {"setpoint.dev/chaos-roll": roll}}},
        },
    })
}

fn deployment(simulated: bool) -> Value {
    let labels = json!({"app": "setpoint-chaos"});
    let selector = match simulated {
        true => json!({ RUNTIME: SIMULATED }),
        false => json!({}),
    };
    json!({
        "metadata": {"namespace": NAMESPACE, "name": NAME},
        "spec": {
            "replicas": MIN_PODS,
            "revisionHistoryLimit": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "nodeSelector": selector,
                    "containers": [{"name": "pause", "image": "registry.k8s.io/pause:3.10"}],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_only_scales_up_so_that_extra_pods_stay_visible() {
        for max_pods in [MAX_PODS, MAX_PODS_HEAVY] {
            let patch = |scaled| patch(scaled, scaled, max_pods);
            let replicas = |scaled| patch(scaled)["spec"]["replicas"].as_u64().unwrap();
            let steps: Vec<_> = (0..20).map(replicas).collect();
            assert!(steps.is_sorted());
            assert_eq!((steps[0], steps[19]), (MIN_PODS, max_pods));
        }
    }

    #[test]
    fn the_manifest_is_a_valid_deployment() {
        let made: Deployment = serde_json::from_value(deployment(true)).unwrap();
        assert_eq!(made.spec.template.spec.node_selector.len(), 1);
        assert_eq!(made.metadata.namespace, NAMESPACE);
    }
}
