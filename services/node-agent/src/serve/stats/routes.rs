//! The routes of the pages.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde::Serialize;
use setpoint_host::gateways_only;
use setpoint_proto::{AGENT_PAGES, NODE_HEADER};
use setpoint_runtime::Runtime;

use super::summary::Host;
use super::{Summary, metrics};
use crate::node::usage::{Meter, Report};
use crate::node::{Node, Pods};

/// The format of the metrics.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves the pages of the nodes of an agent.
pub struct Stats<R> {
    pods: Arc<Pods<R>>,
    meter: Arc<Meter<R>>,
}

impl<R: Runtime> Stats<R> {
    /// Returns the routes, for the process's listener. Gateways alone may call them.
    pub fn router(pods: Arc<Pods<R>>, meter: Arc<Meter<R>>) -> Router {
        let stats = Arc::new(Self { pods, meter });
        let summary = get(Self::summary).post(Self::summary);
        let [summary_page, metrics_page] = AGENT_PAGES;
        let router = Router::new()
            .route(summary_page, summary)
            .route(metrics_page, get(Self::metrics))
            .with_state(stats);
        gateways_only::pages(router)
    }

    async fn summary(State(stats): State<Arc<Self>>, headers: HeaderMap, uri: Uri) -> Response {
        let Some(node) = stats.node(&headers) else {
            return unknown();
        };
        let (host, report, summary) = stats.compute(node);
        if only_cpu_and_memory(&uri) {
            return json(&summary);
        }
        let pods = report.pods.iter();
        let uids = pods.map(|pod| pod.pod.metadata.uid.clone()).collect();
        let measured = stats.meter.disk(&uids).await;
        json(&summary.with_disks(&host, &report, &measured))
    }

    async fn metrics(State(stats): State<Arc<Self>>, headers: HeaderMap) -> Response {
        let Some(node) = stats.node(&headers) else {
            return unknown();
        };
        let (_, _, summary) = stats.compute(node);
        ([(CONTENT_TYPE, TEXT)], metrics::text(&summary)).into_response()
    }

    /// Returns the node of a request: the one that the gateway names, or the only one.
    fn node(&self, headers: &HeaderMap) -> Option<&Node> {
        let nodes = &self.pods.nodes;
        match headers.get(NODE_HEADER) {
            Some(name) => nodes.get(name.to_str().ok()?),
            None if nodes.len() == 1 => nodes.values().next(),
            None => None,
        }
    }

    fn compute(&self, node: &Node) -> (Host, Report, Summary) {
        let host = Host::observe(node.disks.as_ref());
        let report = self.meter.report(&node.name);
        let summary = Summary::of(&node.name, &host, &report);
        (host, report, summary)
    }
}

fn json(page: &impl Serialize) -> Response {
    match serde_json::to_string(page) {
        Ok(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => {
            let message = format!("Internal Error: {error}");
            (StatusCode::INTERNAL_SERVER_ERROR, message).into_response()
        }
    }
}

fn unknown() -> Response {
    let message = format!("the header {NODE_HEADER} names no node of this agent\n");
    (StatusCode::NOT_FOUND, message).into_response()
}

/// Returns whether a request asks for CPU and memory alone. As in the kubelet, only a single `true` does.
fn only_cpu_and_memory(uri: &Uri) -> bool {
    let pairs = uri.query().unwrap_or_default().split('&');
    let values = pairs.filter_map(|pair| pair.strip_prefix("only_cpu_and_memory="));
    values.eq(["true"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_true_asks_for_cpu_and_memory_alone() {
        let only = |uri: &'static str| only_cpu_and_memory(&Uri::from_static(uri));
        assert!(only("/stats/summary?a=b&only_cpu_and_memory=true"));
        for uri in [
            "/stats/summary",
            "/stats/summary?only_cpu_and_memory=1",
            "/stats/summary?only_cpu_and_memory=true&only_cpu_and_memory=true",
        ] {
            assert!(!only(uri), "{uri}");
        }
    }
}
