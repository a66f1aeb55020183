//! The loop that keeps the routes as the nodes are.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::Reader;
use setpoint_controller::events::{Recorder, reference};
use setpoint_host::Check;
use setpoint_model::{Cidr, Key};
use setpoint_proto::core::Node;
use tokio::sync::Notify;
use tokio::time::sleep;
use tracing::{info, warn};

use super::{Kernel, Plan, Refused, plan};
use crate::NodeView;
use crate::command::Error;

/// The reason of Events about Nodes without a route, as upstream's route controller has it.
const FAILED: &str = "FailedToCreateRoute";
/// The pause after each change. It bounds what nodes that change all the time cost.
const PAUSE: Duration = Duration::from_millis(200);

/// Keeps the routes to the Pods of other nodes.
pub struct Keeper {
    /// The nodes of the cluster.
    pub nodes: Reader<NodeView>,
    /// The names of the nodes of this machine.
    pub ours: Vec<String>,
    /// The ranges of the cluster.
    pub within: Vec<Cidr>,
    /// The kernel.
    pub kernel: Kernel,
    /// Notified when nodes change.
    pub changed: Arc<Notify>,
    /// The period in which routes that another program has removed, or a link that went down, are made again.
    pub period: Duration,
    /// Records Events.
    pub events: Recorder,
    /// Passes while every node has its routes.
    pub check: Check,
}

impl Keeper {
    /// Keeps the routes. Never returns. They stay when it is dropped.
    pub async fn run(&self) {
        self.nodes.synced().await;
        let mut reported = BTreeSet::new();
        loop {
            match self.sync().await {
                Ok(missing) => self.report(missing, &mut reported),
                Err(error) => {
                    warn!(%error, "the routes of the kernel are not known, and are read again");
                    self.check.fail(error.to_string());
                }
            }
            sleep(PAUSE).await;
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep(self.period) => {}
            }
        }
    }

    /// Makes the routes that are missing, and returns the ranges that have none nevertheless.
    async fn sync(&self) -> Result<Vec<Refused>, Error> {
        let nodes = self.nodes.list();
        let Plan { routes, refused } =
            plan(nodes.iter().map(AsRef::as_ref), &self.ours, &self.within);
        let known = self.kernel.routes(&self.within).await?;
        if known == routes {
            return Ok(refused);
        }
        let Err(error) = self.kernel.change(&known, &routes).await else {
            info!(routes = routes.len(), "the routes to other nodes are made");
            return Ok(refused);
        };
        let made = self.kernel.routes(&self.within).await?;
        let missing = nodes.iter().flat_map(|node| {
            let ranges = node.pod_ranges.iter();
            ranges.filter_map(|range| {
                let via = routes.get(range)?;
                let is_missing = node.addresses.contains(via) && made.get(range) != Some(via);
                is_missing.then(|| Refused {
                    node: node.meta.key.name.clone(),
                    range: *range,
                    reason: format!("was refused by the kernel: {error}"),
                })
            })
        });
        Ok(missing.chain(refused).collect())
    }

    /// Tells of ranges without a route, once for each node and reason.
    fn report(&self, missing: Vec<Refused>, reported: &mut BTreeSet<String>) {
        let texts: BTreeSet<_> = missing.iter().map(message).collect();
        for refused in &missing {
            let message = message(refused);
            if reported.contains(&message) {
                continue;
            }
            warn!(node = refused.node, "{message}");
            if let Some(node) = self.nodes.get(&Key::new("", &refused.node)) {
                self.events
                    .warning(&reference::<Node>(&node.meta), FAILED, message);
            }
        }
        match texts.first() {
            Some(first) => self.check.fail(first.clone()),
            None => self.check.pass(),
        }
        *reported = texts;
    }
}

fn message(refused: &Refused) -> String {
    let Refused {
        node,
        range,
        reason,
    } = refused;
    format!("Could not create route for {range} of node {node}: it {reason}")
}
