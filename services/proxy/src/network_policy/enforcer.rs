//! The loop that programs policies as the caches have them.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::{Backoff, Client};
use setpoint_host::Check;
use setpoint_model::condition::{self, NETWORK_POLICIES_ENFORCED};
use setpoint_proto::core::{Node, NodeCondition};
use setpoint_proto::{ApiError, Reason};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tracing::{debug, error, info, warn};

use super::caches::Caches;
use super::{Table, plan};
use crate::NodeView;
use crate::nftables::{self, Tools, Transaction};

/// The first and the longest wait after a transaction that failed.
const RETRY: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(30)];

/// The pause after a plan, as a multiple of the time that it took, and the longest. It bounds the share of a processor
/// that frequent changes take.
const PAUSE: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Programs policies, and says so in the conditions of the nodes.
pub struct Enforcer {
    /// The caches.
    pub caches: Caches,
    /// Notified when they change.
    pub changed: Arc<Notify>,
    /// The table.
    pub table: Table,
    /// The socket and the deadline of its transactions.
    pub tools: Tools,
    /// The client of the conditions.
    pub client: Client,
    /// The period of checks.
    pub period: Duration,
    /// Passes while everything is programmed.
    pub check: Check,
}

impl Enforcer {
    /// Programs policies, and those that change. Never returns. What is programmed stays when it is dropped.
    pub async fn run(&mut self) {
        let mut backoff = Backoff::new(RETRY[0], RETRY[1]);
        loop {
            let began = Instant::now();
            let Err(error) = self.sync().await else {
                let pause = began.elapsed().saturating_mul(PAUSE).min(PAUSE_MAX);
                self.check.pass();
                backoff.reset();
                self.announce().await;
                sleep(pause).await;
                tokio::select! {
                    () = self.changed.notified() => {}
                    () = sleep(self.period) => self.probe().await,
                }
                continue;
            };
            error!(%error, "NetworkPolicies are not programmed, and are tried again");
            self.check.fail(error.to_string());
            self.table.forget();
            sleep(backoff.next_delay()).await;
        }
    }

    /// Programs what has changed in one transaction.
    async fn sync(&mut self) -> Result<(), nftables::Error> {
        let world = self.caches.world().await;
        let Some(transaction) = self.table.change(&plan(&world)) else {
            return Ok(());
        };
        self.commit(&transaction).await?;
        info!(
            policies = world.policies.len(),
            "NetworkPolicies are programmed"
        );
        Ok(())
    }

    async fn commit(&self, transaction: &Transaction) -> Result<(), nftables::Error> {
        let limit = self.tools.timeout;
        self.tools.socket.commit(transaction, limit).await
    }

    /// Has the table made again if it is gone.
    async fn probe(&mut self) {
        let Some(probe) = self.table.probe() else {
            return;
        };
        if let Err(error) = self.commit(&probe).await {
            warn!(%error, "the table of NetworkPolicies is gone, and is made again");
            self.table.forget();
        }
    }

    /// Sets the condition of the nodes that do not have it. One that fails is tried again at the next change.
    async fn announce(&self) {
        let nodes = self.caches.nodes();
        for node in nodes.iter().filter(|node| !node.enforces_policies) {
            match self.announce_on(node).await {
                Err(error) if error.reason != Reason::Conflict => {
                    warn!(node = node.meta.key.name, %error, "its condition {NETWORK_POLICIES_ENFORCED} is not set");
                }
                outcome => debug!(
                    node = node.meta.key.name,
                    ?outcome,
                    "its condition {NETWORK_POLICIES_ENFORCED}"
                ),
            }
        }
    }

    async fn announce_on(&self, node: &NodeView) -> Result<(), ApiError> {
        let mut node: Node = self.client.get(&node.meta.key).await?;
        let now = Timestamp::now();
        let condition = NodeCondition {
            r#type: NETWORK_POLICIES_ENFORCED.to_owned(),
            status: "True".to_owned(),
            reason: "Enforced".to_owned(),
            message: "NetworkPolicies restrict the connections of Pods".to_owned(),
            last_heartbeat_time: now.into(),
            last_transition_time: now.into(),
        };
        if condition::set(&mut node.status.conditions, condition) {
            self.client.update_status(&node).await?;
        }
        Ok(())
    }
}
