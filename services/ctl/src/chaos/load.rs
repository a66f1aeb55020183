//! The load: a Deployment in a namespace of its own that is scaled and rolled without end, and what was acknowledged of it.

use std::time::Duration;

use anyhow::{anyhow, bail};
use serde_json::{Value, json};
use setpoint_controller::Client;
use setpoint_controller::client::{ListOptions, Preconditions};
use setpoint_model::Key;
use setpoint_proto::apps::Deployment;
use setpoint_proto::core::{ConfigMap, Namespace};
use setpoint_proto::{ApiError, Reason};
use tokio::time::{sleep, timeout};

use super::witness::Witness;

/// Where the load lives; it is deleted with all that is in it.
pub const NAMESPACE: &str = "setpoint-chaos";
/// The Deployment's name.
const NAME: &str = "load";
/// Where the number of the last step stands.
const STEP: &str = "setpoint.dev/chaos-step";
/// Pods at rest, and at most.
const FEWEST: u64 = 3;
const MOST: u64 = 9;
/// At most, where so much work is wanted that some of it is always under way.
const MANY: u64 = 60;
/// So many steps lead to the most.
const STEPS: u64 = 6;
/// Between two steps, so that something is always under way: simulated containers start at once, others do not.
const BRISK: Duration = Duration::from_millis(60);
const CALM: Duration = Duration::from_millis(250);
/// Every so many steps the template changes, too.
const ROLL: u64 = 3;
/// Everything has come to rest by then, or never will.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at what is being deleted.
const LOOK: Duration = Duration::from_millis(100);

/// The load and its acknowledged writes.
pub struct Load {
    gateway: Client,
    simulated: bool,
    most: u64,
    tried: u64,
    scaled: u64,
    step: u64,
    created: Vec<String>,
}

impl Load {
    /// A load through this gateway; on `simulated` nodes only, where Pods cost little.
    pub fn new(gateway: &Client, simulated: bool) -> Self {
        Self {
            gateway: gateway.clone(),
            simulated,
            most: MOST,
            tried: 0,
            scaled: 0,
            step: 0,
            created: Vec::new(),
        }
    }

    /// The same, with so much work that some of it is always under way.
    #[must_use]
    pub fn heavy(self) -> Self {
        Self { most: MANY, ..self }
    }

    /// Makes it, after removing what an earlier one left.
    pub async fn prepare(&self) -> anyhow::Result<()> {
        self.remove().await?;
        let mut namespace = Namespace::default();
        NAMESPACE.clone_into(&mut namespace.metadata.name);
        self.gateway.create(&namespace).await?;
        let deployment: Deployment = serde_json::from_value(deployment(self.simulated))?;
        self.gateway.create(&deployment).await?;
        Ok(())
    }

    /// Takes step after step, for ever. What fails was not acknowledged, and is no loss.
    pub async fn run(&mut self) {
        let pause = if self.simulated { BRISK } else { CALM };
        loop {
            self.tried += 1;
            self.scaled += 1;
            let _ = self.create().await;
            let _ = self.change().await;
            sleep(pause).await;
        }
    }

    /// As few Pods as at the beginning, and waits until that is so.
    pub async fn rest(&mut self, witness: &Witness) -> anyhow::Result<()> {
        self.tried += 1;
        self.scaled = 0;
        self.change().await?;
        self.settle(witness).await
    }

    /// Waits until the Deployment is rolled out and no Pod is missing or left over.
    pub async fn settle(&self, witness: &Witness) -> anyhow::Result<()> {
        let settled = witness.until(|witness| self.is_settled(witness));
        let settled = timeout(PATIENCE, settled).await;
        settled.map_err(|_| anyhow!("the load has not come to rest within {PATIENCE:?}"))
    }

    fn is_settled(&self, witness: &Witness) -> bool {
        let Some(view) = witness.deployment(&key()) else {
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
            && i32::try_from(witness.active()) == Ok(wanted)
    }

    /// How many writes were acknowledged.
    pub fn acknowledged(&self) -> usize {
        self.created.len() + usize::try_from(self.step).unwrap_or_default()
    }

    /// How many acknowledged writes are there no more.
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

    /// Deletes everything, and waits until it is gone.
    pub async fn remove(&self) -> anyhow::Result<()> {
        let key = Key::new("", NAMESPACE);
        let removing = async {
            loop {
                let deleted =
                    self.gateway
                        .delete::<Namespace>(&key, Preconditions::default(), None);
                match deleted.await {
                    Err(error) if error.reason == Reason::NotFound => return,
                    // On its way, or a gateway is on its way back.
                    _ => sleep(LOOK).await,
                }
            }
        };
        match timeout(PATIENCE, removing).await {
            Ok(()) => Ok(()),
            Err(_) => bail!(
                "the namespace {NAMESPACE} is not gone after {PATIENCE:?}: kubectl delete namespace {NAMESPACE}"
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

    async fn change(&mut self) -> Result<(), ApiError> {
        let patch = change(self.tried, self.scaled, self.most);
        self.gateway.patch::<Deployment>(&key(), "", patch).await?;
        self.step = self.tried;
        Ok(())
    }
}

fn key() -> Key {
    Key::new(NAMESPACE, NAME)
}

fn step_of(deployment: &Deployment) -> u64 {
    let step = deployment.metadata.annotations.get(STEP);
    step.and_then(|step| step.parse().ok()).unwrap_or_default()
}

/// A few Pods more with each step until there are enough, and now and then another template.
fn change(step: u64, scaled: u64, most: u64) -> Value {
    let replicas = most.min(FEWEST + scaled * (most - FEWEST) / STEPS);
    let roll = (step / ROLL).to_string();
    json!({
        "metadata": {"annotations": {STEP: step.to_string()}},
        "spec": {
            "replicas": replicas,
            "template": {"metadata": {"annotations": {"setpoint.dev/chaos-roll": roll}}},
        },
    })
}

fn deployment(simulated: bool) -> Value {
    let labels = json!({"app": "setpoint-chaos"});
    let selector = match simulated {
        true => json!({"setpoint.dev/runtime": "simulated"}),
        false => json!({}),
    };
    json!({
        "metadata": {"namespace": NAMESPACE, "name": NAME},
        "spec": {
            "replicas": FEWEST,
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
    fn a_round_only_ever_scales_up_so_that_a_pod_too_many_cannot_hide() {
        for most in [MOST, MANY] {
            let change = |scaled| change(scaled, scaled, most);
            let replicas = |scaled| change(scaled)["spec"]["replicas"].as_u64().unwrap();
            let steps: Vec<_> = (0..20).map(replicas).collect();
            assert!(steps.is_sorted());
            assert_eq!((steps[0], steps[19]), (FEWEST, most));
        }
    }

    #[test]
    fn the_load_is_a_deployment() {
        let made: Deployment = serde_json::from_value(deployment(true)).unwrap();
        assert_eq!(made.spec.template.spec.node_selector.len(), 1);
        assert_eq!(made.metadata.namespace, NAMESPACE);
    }
}
