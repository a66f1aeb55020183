//! Connections to the agents of nodes.

mod address;
mod container;
mod port;
mod rpc;
mod tls;

use std::time::Duration;

use setpoint_proto::{AGENT_PAGES, ApiError, Reason};
use tonic::Code;

pub(crate) use address::AgentAddress;
pub(crate) use container::{ContainerCall, Verb};
pub(crate) use port::{PortCall, Sink, Source, forward};
pub(crate) use rpc::{connect, connect_to};
pub(crate) use tls::Protocol;

/// The time within which an agent must begin to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The messages to an agent that wait to be sent.
const QUEUE: usize = 16;

/// The pages of an agent that all may read.
const OPEN_PAGES: [&str; 4] = ["/healthz", "/livez", "/metrics", "/readyz"];
/// The prefixes of pages with a single health check.
const CHECKS: [&str; 3] = ["/healthz/", "/livez/", "/readyz/"];

/// Returns whether the gateway passes on requests for a path of an agent. Others, such as those for debugging, are none
/// of the gateway's clients.
pub(crate) fn is_page(path: &str) -> bool {
    let is_check = CHECKS.iter().any(|prefix| path.starts_with(prefix));
    is_check || AGENT_PAGES.contains(&path) || OPEN_PAGES.contains(&path)
}

/// Waits until an agent has begun to answer.
///
/// # Errors
/// The error of the agent, or `InternalError` if it does not answer.
pub(crate) async fn answer<T>(
    answering: impl Future<Output = Result<T, tonic::Status>>,
) -> Result<T, ApiError> {
    match tokio::time::timeout(TIMEOUT, answering).await {
        // The client of the gateway is not the one that the agent does not know.
        Ok(Err(status)) if status.code() == Code::Unauthenticated => {
            let message = format!("the node's agent refuses the gateway: {}", status.message());
            Err(unexpected(&message))
        }
        Ok(answer) => answer.map_err(ApiError::from),
        Err(_) => Err(unexpected("the node's agent does not answer")),
    }
}

/// Returns the error of an agent that does not keep to its contract.
fn unexpected(message: &str) -> ApiError {
    ApiError::new(Reason::InternalError, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks DG5.
    #[test]
    fn only_pages_of_health_and_statistics_are_passed_on() {
        let pages = [
            "/healthz",
            "/readyz/nodes",
            "/metrics",
            "/metrics/resource",
            "/stats/summary",
        ];
        assert!(pages.into_iter().all(is_page));
        let others = [
            "/",
            "/debug/flags/log",
            "//debug/flags/log",
            "/metrics/../debug/flags/log",
            "/setpoint.v1.Node/Exec",
        ];
        assert!(!others.into_iter().any(is_page));
    }
}
