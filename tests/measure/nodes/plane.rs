//! A cluster with a node on containerd, and the Deployment whose Pods are measured.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use setpoint_controller::Client;
use setpoint_model::Key;
use setpoint_proto::apps::Deployment;
use setpoint_tests::cri_node::{CriNode, IMAGE};
use setpoint_tests::{Cluster, client};

use super::COMMAND;
use crate::deployments::Deployments;
use crate::process::{cpu, machine_cpu};

/// The time within which all Pods must be available or gone.
const PATIENCE: Duration = Duration::from_secs(600);
/// Pause between two measurements, for work that the one before leaves behind.
const REST: Duration = Duration::from_secs(1);
const NAME: &str = "measured";
const AGENT: &str = "node-agent-0";

/// The cluster. Its agent ends before the node.
pub struct Plane {
    gateway: Client,
    deployments: Deployments,
    cluster: Cluster,
    node: CriNode,
}

/// CPU times.
#[derive(Clone, Copy)]
pub struct Spent {
    /// That of the agent.
    pub agent: Duration,
    /// That of etcd, the gateway and all controllers.
    pub control_plane: Duration,
    /// That of all processes of the machine.
    pub machine: Duration,
    /// That of containerd, without its shims.
    pub containerd: Duration,
}

impl Spent {
    /// Returns the times since an earlier point.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            agent: self.agent.saturating_sub(earlier.agent),
            control_plane: self.control_plane.saturating_sub(earlier.control_plane),
            machine: self.machine.saturating_sub(earlier.machine),
            containerd: self.containerd.saturating_sub(earlier.containerd),
        }
    }
}

impl Plane {
    /// Starts a cluster with the node.
    pub fn start(node: CriNode) -> Self {
        let cluster = node.cluster();
        let gateway = client(&cluster.gateway_url());
        Self {
            deployments: Deployments::watch(&gateway),
            gateway,
            cluster,
            node,
        }
    }

    /// Returns the process ids of the agent and of containerd.
    pub fn processes(&mut self) -> (u32, u32) {
        let agent = self.cluster.process(AGENT).pid();
        (agent, self.node.containerd.pid())
    }

    /// Returns the CPU times so far.
    pub fn spent(&mut self) -> Spent {
        let (agent, containerd) = self.processes();
        let others = self.cluster.process_names().into_iter();
        let others = others.filter(|name| name != AGENT);
        Spent {
            agent: cpu(agent),
            control_plane: others
                .map(|name| cpu(self.cluster.process(&name).pid()))
                .sum(),
            machine: machine_cpu(),
            containerd: cpu(containerd),
        }
    }

    /// Waits for what is left of the measurement before.
    pub async fn rest(&self) {
        tokio::time::sleep(REST).await;
    }

    /// Creates a Deployment, whose container has these fields in place of the usual command, and waits until all its
    /// Pods are available. Returns the time.
    ///
    /// # Errors
    /// If they are not, with the status of the Deployment: so many the machine can run.
    pub async fn create(&self, count: usize, fields: Option<Value>) -> anyhow::Result<Duration> {
        let deployment = deployment(count, fields)?;
        let (key, begun) = (key(), Instant::now());
        let written = self.gateway.create(&deployment).await?;
        let is_available = |now: &Deployment| {
            usize::try_from(now.status.available_replicas).is_ok_and(|now| now == count)
        };
        let until = self
            .deployments
            .until(&key, written.revision, PATIENCE, is_available);
        until.await?;
        Ok(begun.elapsed())
    }

    /// Deletes the Deployment, and waits until containerd has nothing of its Pods.
    ///
    /// # Errors
    /// If it still has.
    pub async fn delete(&self) -> anyhow::Result<()> {
        let (key, any) = (key(), Default::default());
        self.gateway.delete::<Deployment>(&key, any, None).await?;
        let begun = Instant::now();
        while self.node.containerd.shims() > 0 || !self.node.all().is_empty() {
            ensure!(
                begun.elapsed() < PATIENCE,
                "Pods are left after {PATIENCE:?}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.rest().await;
        Ok(())
    }
}

fn key() -> Key {
    Key::new("default", NAME)
}

fn deployment(count: usize, fields: Option<Value>) -> anyhow::Result<Deployment> {
    let mut container = fields.unwrap_or_else(|| json!({"command": COMMAND}));
    container["name"] = "main".into();
    container["image"] = IMAGE.into();
    let deployment = json!({
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {
                "metadata": {"labels": {"app": NAME}},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
            },
        },
    });
    serde_json::from_value(deployment).context("a Deployment")
}
