//! Priority and fairness, by the requests of several users.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod hostile;
mod objects;
mod odd_paths;
mod over_grpc;
mod over_http;

use std::sync::Arc;

use serde_json::{Value, json};
use setpoint_gateway::in_process;
use setpoint_gateway::registry::Registry;
use setpoint_store::Memory;
use setpoint_store::cache::Settings;
use tokio_util::sync::DropGuard;

use crate::http::api::Api;

pub const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
pub const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";

/// A gateway with its background tasks, and with a level for the group `tenants`.
pub struct Fair {
    pub api: Api,
    _background: DropGuard,
}

impl Fair {
    /// Starts a gateway whose level for tenants has these seats, and queues of this length.
    pub async fn start(seats: usize, length: usize) -> Self {
        // Of 245 + 1 000 shares, tenants have 1 000.
        let total = seats * 1245 / 1000;
        let with = |registry: Registry| registry.with_seats(total);
        let store = Arc::new(Memory::default());
        let registry = in_process::registry_with(store, Settings::default(), with).await;
        let fair = Self {
            _background: {
                let api = Api::of(registry.clone());
                api.run_background()
            },
            api: Api::of(registry),
        };
        fair.api
            .eventually(&format!("{SCHEMAS}/catch-all"), |reply| reply.code == 200)
            .await;
        fair.api.post(LEVELS, level("tenants", length)).await.ok();
        fair.api
            .post(SCHEMAS, schema("tenants", "tenants"))
            .await
            .ok();
        let path = format!("{SCHEMAS}/tenants");
        fair.api
            .eventually(&path, |reply| status(&reply.json()) == "False")
            .await;
        assert_eq!(fair.nominal("tenants"), seats);
        fair
    }

    /// Returns the seats that are configured for a level.
    pub fn nominal(&self, level: &str) -> usize {
        metric(&format!(
            "nominal_limit_seats{{priority_level=\"{level}\"}}"
        ))
    }
}

/// Returns a metric of flow control that is a whole number.
pub fn metric(series: &str) -> usize {
    value(series) as usize
}

/// Returns a metric of flow control.
pub fn value(series: &str) -> f64 {
    let text = metrics_text();
    let prefix = format!("apiserver_flowcontrol_{series} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&prefix));
    line.map_or(0.0, |value| value.parse().unwrap())
}

fn metrics_text() -> String {
    prometheus::TextEncoder::new()
        .encode_to_string(&prometheus::gather())
        .unwrap()
}

pub fn level(name: &str, length: usize) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": { "type": "Limited", "limited": {
            "nominalConcurrencyShares": 1000, "lendablePercent": 0, "borrowingLimitPercent": 0,
            "limitResponse": { "type": "Queue", "queuing": {
                "queues": 64, "handSize": 4, "queueLengthLimit": length,
            } },
        } },
    })
}

/// Returns a schema for all requests of a group.
pub fn schema(group: &str, level: &str) -> Value {
    json!({
        "metadata": { "name": group },
        "spec": {
            "priorityLevelConfiguration": { "name": level },
            "matchingPrecedence": 300,
            "distinguisherMethod": { "type": "ByUser" },
            "rules": [{
                "subjects": [{ "kind": "Group", "group": { "name": group } }],
                "resourceRules": [{
                    "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
                    "namespaces": ["*"], "clusterScope": true,
                }],
                "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
            }],
        },
    })
}

/// Returns the status of the condition Dangling.
pub fn status(schema: &Value) -> &str {
    schema["status"]["conditions"][0]["status"]
        .as_str()
        .unwrap_or_default()
}
