//! The resource usage of all Pods, read from the agents of their nodes when it is requested.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use setpoint_codec::kind_of;
use setpoint_proto::core::Node;
use setpoint_proto::setpoint::node_client::NodeClient;
use setpoint_proto::setpoint::{PodUsage, UsageRequest};
use setpoint_proto::{ApiError, Reason};
use setpoint_store::cache::{AtLeast, Cache, Filter};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tracing::debug;

use crate::agents::{self, AgentAddress};
use crate::dial_policy::DialPolicy;
use crate::errors::readable;

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
    pub async fn of_pods(
        &self,
        cache: &Cache,
        policy: &DialPolicy,
    ) -> Result<Arc<Vec<PodUsage>>, ApiError> {
        let mut last = self.last.lock().await;
        if let Some((at, usage)) = &*last
            && at.elapsed() < FRESH
        {
            return Ok(usage.clone());
        }
        let agents = addresses(cache).await?.into_values();
        let answers = agents.map(|at| async move { read(policy, &at).await.unwrap_or_default() });
        let answers = futures::stream::iter(answers).buffer_unordered(CONCURRENCY);
        let answers: Vec<_> = answers.collect().await;
        let usage = Arc::new(answers.into_iter().flatten().collect::<Vec<_>>());
        *last = Some((Instant::now(), usage.clone()));
        Ok(usage)
    }
}

/// Returns the address of each agent, as its nodes declare it: one agent may serve many.
async fn addresses(cache: &Cache) -> Result<BTreeMap<SocketAddr, AgentAddress>, ApiError> {
    let filter = Filter::all(kind_of::<Node>(), "");
    let snapshot = cache.list(&filter, AtLeast::Any).await?;
    let mut agents = BTreeMap::<_, AgentAddress>::new();
    for item in snapshot.items {
        let node = readable(item.decode())?;
        if let Some(node) = node.downcast_ref::<Node>() {
            let Some(declared) = AgentAddress::declared(node) else {
                continue;
            };
            // A node may declare the address of another one's agent.
            match agents.entry(declared.socket()) {
                Entry::Vacant(vacant) => {
                    vacant.insert(declared);
                }
                Entry::Occupied(mut known) => known.get_mut().merge(declared),
            }
        }
    }
    Ok(agents)
}

/// Returns what an agent answers. Failures are those of one node: its Pods have no metrics until it answers again.
async fn read(policy: &DialPolicy, at: &AgentAddress) -> Result<Vec<PodUsage>, ApiError> {
    let call = async {
        let mut agent = NodeClient::new(agents::connect_to(policy, at).await?);
        Ok(agent.usage(UsageRequest {}).await?.into_inner().pods)
    };
    let answer = timeout(TIMEOUT, call).await;
    let answer = answer.unwrap_or_else(|_| {
        let message = "the agent does not answer";
        Err(ApiError::new(Reason::Timeout, message))
    });
    answer.inspect_err(|error| {
        debug!(node = at.node(), %error, "the usage of Pods is unknown");
    })
}
