//! The last thing that a node says, so that nobody sends it Pods while nobody is there to run them.

use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use setpoint_controller::Client;
use setpoint_model::{Key, condition};
use setpoint_proto::ApiError;
use setpoint_proto::core::{self, NodeCondition};
use tokio::time::timeout;
use tracing::{debug, warn};

/// Who stops has little time; a gateway that does not answer is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Nodes that are reported at once.
const AT_ONCE: usize = 16;

/// Reports that these nodes are not ready. Pods that run there go on; an agent that is back reports anew.
pub async fn farewell(gateway: &Client, names: Vec<String>) {
    let all = futures::stream::iter(names).for_each_concurrent(AT_ONCE, |name| async move {
        match unready(gateway, &name).await {
            Ok(()) => debug!(node = %name, "reported as not ready"),
            Err(error) => warn!(node = %name, %error, "it stops unreported"),
        }
    });
    if timeout(PATIENCE, all).await.is_err() {
        warn!("the gateway does not take the last reports");
    }
}

async fn unready(gateway: &Client, name: &str) -> Result<(), ApiError> {
    let mut node = gateway.get::<core::Node>(&Key::new("", name)).await?;
    let now = Timestamp::now();
    let stated = NodeCondition {
        r#type: "Ready".to_owned(),
        status: condition::FALSE.to_owned(),
        last_heartbeat_time: now.into(),
        last_transition_time: now.into(),
        reason: "KubeletNotReady".to_owned(),
        message: "its agent was stopped".to_owned(),
    };
    condition::set(&mut node.status.conditions, stated);
    gateway.update_status(&node).await.map(drop)
}
