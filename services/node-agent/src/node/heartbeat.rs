//! Registers a node, renews its Lease and updates its status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use setpoint_controller::{Backoff, Client};
use setpoint_model::replicas::NODE_LEASES;
use setpoint_model::{Key, condition};
use setpoint_proto::coordination::{Lease, LeaseSpec};
use setpoint_proto::core::{self, ContainerImage, NodeCondition, NodeSpec};
use setpoint_proto::meta::{ObjectMeta, OwnerReference};
use setpoint_proto::{ApiError, Reason, Resource as _};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tracing::{debug, info, warn};

use super::{Machine, Node, NodeState, annotations, labels, status, taints};
use crate::pod::clients::NodeClients;

/// Age at which the Lease expires and the node counts as lost.
const LEASE_DURATION_SECONDS: i32 = 40;
/// Number of intervals without a renewal after which the node may count as not ready, so that its status is written
/// again.
const MISSED: u32 = 3;
/// Upper bound on the reports at shutdown, which must not delay the end of the process.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of nodes whose shutdown is reported concurrently.
const MAX_CONCURRENT_REPORTS: usize = 16;

/// Returns the images that are present on a node.
pub type Images = Arc<dyn Fn() -> BoxFuture<'static, Vec<ContainerImage>> + Send + Sync>;

/// Keeps one node registered at the gateway.
pub struct Heartbeat {
    /// The node.
    pub node: Node,
    /// Address of the agent's listener, as `host:port`.
    pub address: String,
    /// The machine that the process runs on.
    pub machine: Machine,
    /// Returns the images that are present on the node.
    pub images: Images,
    /// The state that decides on the conditions of the node.
    pub state: watch::Receiver<NodeState>,
    /// Notified when the status does not fit what others have written to it.
    pub outdated: Arc<Notify>,
    /// The client of the gateway.
    pub gateway: Client,
    /// Interval between two renewals of the Lease.
    pub interval: Duration,
    /// Interval between two updates of the node's status.
    pub status_interval: Duration,
}

impl Heartbeat {
    /// Registers the node, calls `registered`, and renews its Lease until dropped.
    ///
    /// `spread`, between 0 and 1, is the offset of the renewals within the interval, so that several nodes do not renew
    /// at once.
    pub async fn run(&self, spread: f64, registered: impl FnOnce()) {
        let (uid, mut lease) = self.register_with_retry().await;
        info!(node = %self.node.name, "registered");
        registered();
        let first = Instant::now() + self.interval.mul_f64(spread);
        let mut ticks = interval_at(first, self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut reported, mut renewed, mut missed) = (Instant::now(), Instant::now(), false);
        let mut state = self.state.clone();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                // Conditions decide on the binding of Pods and are reported at once.
                Ok(()) = state.changed() => missed = true,
                () = self.outdated.notified() => missed = true,
            }
            match self.renew(&uid, lease.take()).await {
                Ok(renewal) => {
                    lease = Some(renewal);
                    missed |= renewed.elapsed() >= self.interval.saturating_mul(MISSED);
                    renewed = Instant::now();
                }
                Err(error) => warn!(node = %self.node.name, %error, "cannot renew the Lease"),
            }
            if missed || reported.elapsed() >= self.status_interval {
                match self.register().await {
                    Ok(_) => (reported, missed) = (Instant::now(), false),
                    Err(error) => {
                        warn!(node = %self.node.name, %error, "cannot update the status")
                    }
                }
            }
        }
    }

    async fn register_with_retry(&self) -> (String, Option<Lease>) {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        loop {
            let attempt = async {
                let uid = self.register().await?;
                let lease = self.renew(&uid, None).await?;
                Ok::<_, ApiError>((uid, Some(lease)))
            };
            match attempt.await {
                Ok(registered) => return registered,
                Err(error) => {
                    warn!(node = %self.node.name, %error, "cannot register the node; retrying")
                }
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Creates or updates the Node object and returns its uid.
    async fn register(&self) -> Result<String, ApiError> {
        let key = Key::new("", &self.node.name);
        let known = match self.gateway.get::<core::Node>(&key).await {
            Err(error) if error.reason == Reason::NotFound => self.create().await?,
            known => self.update_metadata(known?).await?,
        };
        let now = Timestamp::now();
        let (node, address) = (&self.node, self.address.as_str());
        let state = self.state.borrow().clone();
        let mut status = status(node, &self.machine, address, &state, &known.status, now);
        status.images = (self.images)().await;
        let uid = known.metadata.uid.clone();
        self.gateway
            .update_status(&core::Node { status, ..known })
            .await?;
        Ok(uid)
    }

    async fn create(&self) -> Result<core::Node, ApiError> {
        let metadata = ObjectMeta {
            name: self.node.name.clone(),
            labels: labels(&self.node),
            annotations: annotations(&self.node),
            ..ObjectMeta::default()
        };
        let spec = NodeSpec {
            taints: taints(&self.node),
            ..NodeSpec::default()
        };
        let node = core::Node {
            metadata,
            spec,
            ..core::Node::default()
        };
        self.gateway.create(&node).await?.object()
    }

    /// Sets the node's own labels and annotations; others are kept.
    async fn update_metadata(&self, known: core::Node) -> Result<core::Node, ApiError> {
        let (labels, annotations) = (labels(&self.node), annotations(&self.node));
        let has = |all: &BTreeMap<String, String>, own: &BTreeMap<String, String>| {
            own.iter().all(|(name, value)| all.get(name) == Some(value))
        };
        if has(&known.metadata.labels, &labels) && has(&known.metadata.annotations, &annotations) {
            return Ok(known);
        }
        let key = Key::of(&known.metadata);
        let patch = serde_json::json!({"metadata": {"labels": labels, "annotations": annotations}});
        self.gateway
            .patch::<core::Node>(&key, "", patch)
            .await?
            .object()
    }

    /// Renews the Lease: `known` without reading it first, else the existing one, else a new one.
    async fn renew(&self, uid: &str, known: Option<Lease>) -> Result<Lease, ApiError> {
        let key = Key::new(NODE_LEASES, &self.node.name);
        let mut lease = match known {
            Some(lease) => lease,
            None => match self.gateway.get::<Lease>(&key).await {
                Err(error) if error.reason == Reason::NotFound => {
                    return self.create_lease(uid).await;
                }
                lease => lease?,
            },
        };
        lease.spec = self.lease_spec();
        self.gateway.update(&lease).await?.object()
    }

    async fn create_lease(&self, uid: &str) -> Result<Lease, ApiError> {
        let owner = OwnerReference {
            api_version: core::Node::API_VERSION.to_owned(),
            kind: core::Node::KIND.to_owned(),
            name: self.node.name.clone(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        };
        let metadata = ObjectMeta {
            namespace: NODE_LEASES.to_owned(),
            name: self.node.name.clone(),
            owner_references: vec![owner],
            ..ObjectMeta::default()
        };
        let spec = self.lease_spec();
        self.gateway
            .create(&Lease { metadata, spec })
            .await?
            .object()
    }

    fn lease_spec(&self) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.node.name.clone()),
            lease_duration_seconds: Some(LEASE_DURATION_SECONDS),
            renew_time: Some(Timestamp::now().into()),
            ..LeaseSpec::default()
        }
    }
}

/// Reports that these nodes are not ready, so that no more Pods are bound to them. Their Pods keep running; an agent
/// that restarts reports the nodes as ready again.
pub async fn report_shutdown(clients: &NodeClients, names: Vec<String>) {
    let all = futures::stream::iter(names).for_each_concurrent(
        MAX_CONCURRENT_REPORTS,
        |name| async move {
            match report_not_ready(&clients.of(&name), &name).await {
                Ok(()) => debug!(node = %name, "reported as not ready"),
                Err(error) => warn!(node = %name, %error, "cannot report the shutdown"),
            }
        },
    );
    if timeout(SHUTDOWN_TIMEOUT, all).await.is_err() {
        warn!("timed out reporting the shutdown");
    }
}

async fn report_not_ready(gateway: &Client, name: &str) -> Result<(), ApiError> {
    let mut node = gateway.get::<core::Node>(&Key::new("", name)).await?;
    let now = Timestamp::now();
    let stated = NodeCondition {
        r#type: "Ready".to_owned(),
        status: condition::FALSE.to_owned(),
        last_heartbeat_time: now.into(),
        last_transition_time: now.into(),
        reason: "KubeletNotReady".to_owned(),
        message: "the node agent was stopped".to_owned(),
    };
    condition::set(&mut node.status.conditions, stated);
    gateway.update_status(&node).await.map(drop)
}
