//! Registers a node, then says again and again that it is alive.

use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::{Backoff, Client};
use setpoint_model::Key;
use setpoint_proto::coordination::{Lease, LeaseSpec};
use setpoint_proto::core::{self, Namespace, NodeSpec};
use setpoint_proto::meta::{ObjectMeta, OwnerReference};
use setpoint_proto::{ApiError, Reason, Resource as _};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tracing::{info, warn};

use super::{Machine, Node, labels, status, taints};

/// Where the Leases of nodes are.
const NAMESPACE: &str = "kube-node-lease";
/// A node whose Lease is older than this counts as lost.
const LEASE_SECONDS: i32 = 40;

/// One node's standing with the gateway.
pub struct Heartbeat {
    /// The node.
    pub node: Node,
    /// Where its agent listens, host and port.
    pub address: String,
    /// The machine that it is.
    pub machine: Machine,
    /// Whom to tell.
    pub gateway: Client,
    /// How often to say that it is alive.
    pub every: Duration,
    /// How often to report its status.
    pub refresh: Duration,
}

impl Heartbeat {
    /// Registers the node, calls `registered`, and renews its Lease for ever.
    ///
    /// `spread` of many nodes is how far into the interval this one's turn is, between 0 and 1.
    pub async fn run(&self, spread: f64, registered: impl FnOnce()) {
        let (uid, mut lease) = self.insist().await;
        info!(node = %self.node.name, "registered");
        registered();
        let first = Instant::now() + self.every.mul_f64(spread);
        let mut beat = interval_at(first, self.every);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reported = Instant::now();
        loop {
            beat.tick().await;
            match self.renew(&uid, lease.take()).await {
                Ok(renewed) => lease = Some(renewed),
                Err(error) => warn!(node = %self.node.name, %error, "its Lease is not renewed"),
            }
            if reported.elapsed() >= self.refresh {
                match self.register().await {
                    Ok(_) => reported = Instant::now(),
                    Err(error) => {
                        warn!(node = %self.node.name, %error, "its status is not reported")
                    }
                }
            }
        }
    }

    async fn insist(&self) -> (String, Option<Lease>) {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        loop {
            let attempt = async {
                let uid = self.register().await?;
                let lease = self.renew(&uid, None).await?;
                Ok::<_, ApiError>((uid, Some(lease)))
            };
            match attempt.await {
                Ok(registered) => return registered,
                Err(error) => warn!(node = %self.node.name, %error, "not registered; trying again"),
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Brings the Node object up to date, made anew if need be, and gives its uid.
    async fn register(&self) -> Result<String, ApiError> {
        let key = Key::new("", &self.node.name);
        let known = match self.gateway.get::<core::Node>(&key).await {
            Err(error) if error.reason == Reason::NotFound => self.create().await?,
            known => self.relabel(known?).await?,
        };
        let now = Timestamp::now();
        let (node, address) = (&self.node, self.address.as_str());
        let status = status(node, &self.machine, address, &known.status, now);
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
        Ok(self.gateway.create(&node).await?.object)
    }

    /// Sets the labels that are the node's own; others' labels stay.
    async fn relabel(&self, known: core::Node) -> Result<core::Node, ApiError> {
        let labels = labels(&self.node);
        let has =
            |(name, value): (&String, &String)| known.metadata.labels.get(name) == Some(value);
        if labels.iter().all(has) {
            return Ok(known);
        }
        let key = Key::of(&known.metadata);
        let patch = serde_json::json!({"metadata": {"labels": labels}});
        Ok(self
            .gateway
            .patch::<core::Node>(&key, "", patch)
            .await?
            .object)
    }

    /// Renews the Lease: the known one without asking, else whatever is there, else a new one.
    async fn renew(&self, uid: &str, known: Option<Lease>) -> Result<Lease, ApiError> {
        let key = Key::new(NAMESPACE, &self.node.name);
        let mut lease = match known {
            Some(lease) => lease,
            None => match self.gateway.get::<Lease>(&key).await {
                Err(error) if error.reason == Reason::NotFound => {
                    return self.create_lease(uid).await;
                }
                lease => lease?,
            },
        };
        lease.spec = self.spec();
        Ok(self.gateway.update(&lease).await?.object)
    }

    async fn create_lease(&self, uid: &str) -> Result<Lease, ApiError> {
        let mut namespace = Namespace::default();
        namespace.metadata.name = NAMESPACE.to_owned();
        match self.gateway.create(&namespace).await {
            Err(error) if error.reason != Reason::AlreadyExists => return Err(error),
            _ => {}
        }
        let owner = OwnerReference {
            api_version: core::Node::API_VERSION.to_owned(),
            kind: core::Node::KIND.to_owned(),
            name: self.node.name.clone(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        };
        let metadata = ObjectMeta {
            namespace: NAMESPACE.to_owned(),
            name: self.node.name.clone(),
            owner_references: vec![owner],
            ..ObjectMeta::default()
        };
        let spec = self.spec();
        Ok(self.gateway.create(&Lease { metadata, spec }).await?.object)
    }

    fn spec(&self) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.node.name.clone()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(Timestamp::now().into()),
            ..LeaseSpec::default()
        }
    }
}
