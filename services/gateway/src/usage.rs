//! The resource usage of all Pods, read from the agents of their nodes when it is requested.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use setpoint_codec::kind_of;
use setpoint_proto::core::Node;
use setpoint_proto::setpoint::node_client::NodeClient;
use setpoint_proto::setpoint::{PodUsage, UsageRequest};
use setpoint_proto::{ApiError, Reason};
use setpoint_store::cache::{AtLeast, Filter};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tracing::debug;

use crate::agents;
use crate::peers::Peers;
use crate::registry::{Registry, readable};

/// The time for which what the agents have answered is used again.
const FRESH: Duration = Duration::from_secs(5);
/// The time within which an agent must answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of agents that are read concurrently.
const CONCURRENCY: usize = 32;

/// What the agents have answered last.
#[derive(Default)]
pub(crate) struct Usage {
    /// Held while the agents are read, so that concurrent requests share what they answer.
    last: Mutex<Option<(Instant, Arc<Vec<PodUsage>>)>>,
}

impl Usage {
    /// Returns the usage of the running Pods on all nodes whose agents answer.
    ///
    /// # Errors
    /// Errors of the cache.
    pub async fn of_pods(&self, registry: &Registry) -> Result<Arc<Vec<PodUsage>>, ApiError> {
        let mut last = self.last.lock().await;
        if let Some((at, usage)) = &*last
            && at.elapsed() < FRESH
        {
            return Ok(usage.clone());
        }
        let agents = agents(registry).await?.into_values();
        let peers = registry.peers();
        let answers =
            agents.map(|node| async move { read(peers, &node).await.unwrap_or_default() });
        let answers = futures::stream::iter(answers).buffer_unordered(CONCURRENCY);
        let answers: Vec<_> = answers.collect().await;
        let usage = Arc::new(answers.into_iter().flatten().collect::<Vec<_>>());
        *last = Some((Instant::now(), usage.clone()));
        Ok(usage)
    }
}

/// Returns a node of each agent, by the address of the agent. One agent may serve many nodes.
async fn agents(registry: &Registry) -> Result<BTreeMap<(String, i32), Node>, ApiError> {
    let filter = Filter::all(kind_of::<Node>(), "");
    let snapshot = registry.cache().list(&filter, AtLeast::Any).await?;
    let mut agents = BTreeMap::new();
    for item in snapshot.items {
        let node = readable(item.decode())?;
        if let Some(node) = node.downcast_ref::<Node>() {
            let (host, port) = agents::address(node);
            agents.insert((host.to_owned(), port), node.clone());
        }
    }
    Ok(agents)
}

/// Returns what an agent answers. Failures are those of one node: its Pods have no metrics until it answers again.
async fn read(peers: &Peers, node: &Node) -> Result<Vec<PodUsage>, ApiError> {
    let call = async {
        let mut agent = NodeClient::new(agents::connect(peers, node).await?);
        Ok(agent.usage(UsageRequest {}).await?.into_inner().pods)
    };
    let answer = timeout(TIMEOUT, call).await;
    let answer = answer.unwrap_or_else(|_| {
        let message = "the agent does not answer";
        Err(ApiError::new(Reason::Timeout, message))
    });
    answer.inspect_err(|error| {
        debug!(node = node.metadata.name, %error, "the usage of Pods is unknown");
    })
}
