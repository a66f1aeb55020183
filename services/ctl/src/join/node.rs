//! Waits for the node of an agent that has joined.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use axum::body::Body;
use axum::http::Request;
use serde_json::Value;
use setpoint_host::http_client;
use setpoint_proto::Resource as _;
use setpoint_proto::core::Node;
use setpoint_tls::Credentials;
use tokio::time::{Instant, sleep, timeout};

use super::gateway::Gateway;
use crate::launcher::Joined;

/// A node that is not Ready after this time is told as such.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// The interval of looking.
const INTERVAL: Duration = Duration::from_millis(200);
/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time until the first message about a delay; doubles with each message.
const PROGRESS_DELAY: Duration = Duration::from_secs(3);
const MAX_BYTES: usize = 1 << 20;

/// Waits until the node is Ready, as its own user reads; `credentials` are those of the node once it has a certificate.
///
/// # Errors
/// It is not Ready in time, and why not.
pub async fn until_ready(
    gateways: &[Gateway],
    joined: &Joined,
    credentials: impl Fn() -> Option<Credentials>,
) -> anyhow::Result<()> {
    let (begin, mut next_progress) = (Instant::now(), PROGRESS_DELAY);
    loop {
        let why = match credentials() {
            None => "its agent has no certificate yet".to_owned(),
            Some(own) => match read(gateways, &own, &joined.node).await {
                Ok(node) => match why_not_ready(&node) {
                    None => return Ok(()),
                    Some(why) => why,
                },
                Err(error) => format!("it cannot be read: {error:#}"),
            },
        };
        if begin.elapsed() >= READY_TIMEOUT {
            bail!(
                "the node {} is not Ready after {READY_TIMEOUT:?}: {why}",
                joined.node
            );
        }
        if begin.elapsed() >= next_progress {
            println!("Waiting for the node {}: {why}", joined.node);
            next_progress *= 2;
        }
        sleep(INTERVAL).await;
    }
}

/// Returns the node as the first gateway that answers has it.
async fn read(gateways: &[Gateway], own: &Credentials, node: &str) -> anyhow::Result<Value> {
    let mut failure = anyhow!("no gateway is given");
    for gateway in gateways {
        match read_from(gateway, own, node).await {
            Ok(node) => return Ok(node),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn read_from(gateway: &Gateway, own: &Credentials, node: &str) -> anyhow::Result<Value> {
    let url = format!("{}/api/v1/{}/{node}", gateway.url(), Node::RESOURCE);
    let request = Request::get(url).body(Body::empty())?;
    let answer = timeout(TIMEOUT, http_client::send_as(Some(own), request, MAX_BYTES)).await;
    let answer = answer.context("the gateway does not answer")??;
    match answer.status.as_u16() {
        200 => Ok(serde_json::from_str(&answer.body)?),
        _ => bail!("the gateway answers {}", answer.status),
    }
}

/// Returns why a node is not Ready; `None` if it is.
fn why_not_ready(node: &Value) -> Option<String> {
    let conditions = node["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.find(|condition| condition["type"] == "Ready");
    match ready {
        None => Some("its agent has not reported yet".to_owned()),
        Some(ready) if ready["status"] == "True" => None,
        Some(ready) => Some(
            ready["message"]
                .as_str()
                .unwrap_or("without a reason")
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_is_ready_when_its_condition_says_so() {
        let node = |conditions: Value| json!({ "status": { "conditions": conditions } });
        let ready = |status: &str| {
            let ready = json!({ "type": "Ready", "status": status, "message": "no engine" });
            json!([{ "type": "Other", "status": "True" }, ready])
        };
        assert_eq!(why_not_ready(&node(ready("True"))), None);
        assert_eq!(
            why_not_ready(&node(ready("False"))).as_deref(),
            Some("no engine")
        );
        let silent = Some("its agent has not reported yet".to_owned());
        assert_eq!(why_not_ready(&node(json!([]))), silent);
        assert_eq!(why_not_ready(&json!({})), silent);
    }
}
