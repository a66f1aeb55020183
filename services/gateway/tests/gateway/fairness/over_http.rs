//! Headers, errors and debug pages, as a client sees them.

use http::header::RETRY_AFTER;
use http::{HeaderValue, Request};
use serde_json::json;

use super::{Fair, LEVELS, SCHEMAS, metric};
use crate::http::api::{Api, CONFIGMAPS, Reply};

pub const SCHEMA_UID: &str = "x-kubernetes-pf-flowschema-uid";
pub const LEVEL_UID: &str = "x-kubernetes-pf-prioritylevel-uid";

pub async fn uid(api: &Api, path: &str) -> String {
    let object = api.get(path).await.ok();
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn header<'a>(reply: &'a Reply, name: &str) -> &'a str {
    reply
        .headers
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

async fn as_user(api: &Api, name: &str, group: &str, agent: &str) -> Reply {
    let request = Request::get(CONFIGMAPS)
        .header("impersonate-user", name)
        .header("impersonate-group", group)
        .header("impersonate-group", "system:authenticated")
        .header("user-agent", agent)
        .header("x-remote-user", "system:kube-scheduler")
        .header("x-remote-group", "system:masters");
    api.send(request, "").await
}

/// Checks DG23: the level is that of the authenticated user, whatever a client says about itself.
#[tokio::test]
async fn a_response_names_the_schema_and_level_of_who_asked() {
    let fair = Fair::start(10, 5).await;
    let api = &fair.api;
    let tenants = [
        uid(api, &format!("{SCHEMAS}/tenants")).await,
        uid(api, &format!("{LEVELS}/tenants")).await,
    ];
    for agent in [
        "curl",
        "kube-scheduler/v1.36.0",
        "setpoint-scheduler",
        "kubelet",
    ] {
        let reply = as_user(api, "mallory", "tenants", agent).await;
        assert_eq!(reply.code, 200);
        assert_eq!(
            [header(&reply, SCHEMA_UID), header(&reply, LEVEL_UID)],
            tenants
        );
    }
    let exempt = api.get(CONFIGMAPS).await;
    assert_eq!(
        header(&exempt, SCHEMA_UID),
        uid(api, &format!("{SCHEMAS}/exempt")).await
    );
    let other = as_user(api, "mallory", "others", "curl").await;
    let expected = uid(api, &format!("{SCHEMAS}/global-default")).await;
    assert_eq!(header(&other, SCHEMA_UID), expected);
    let refused = api.get("/api/v1/namespaces/default/pods/absent").await;
    assert_eq!(refused.code, 404);
    assert!(
        !header(&refused, LEVEL_UID).is_empty(),
        "errors have the headers, too"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rejected_request_is_told_when_to_try_again() {
    let fair = Fair::start(10, 5).await;
    let api = &fair.api;
    let none = json!({ "spec": { "limited": { "nominalConcurrencyShares": 0 } } });
    let path = format!("{LEVELS}/tenants");
    api.patch(&path, "merge-patch+json", none).await.ok();
    api.eventually(&path, |_| fair.nominal("tenants") == 0)
        .await;
    let reply = as_user(api, "jane", "tenants", "curl").await;
    let message = reply.refused(429, "TooManyRequests");
    assert_eq!(message, "Too many requests, please try again later.");
    assert_eq!(reply.headers[RETRY_AFTER], HeaderValue::from(1));
    assert!(!header(&reply, SCHEMA_UID).is_empty());
    let series = r#"{flow_schema="tenants",priority_level="tenants",reason="time-out"}"#;
    assert_eq!(metric(&format!("rejected_requests_total{series}")), 1);
    assert_eq!(api.get(CONFIGMAPS).await.code, 200, "others are served");
}

#[tokio::test]
async fn the_debug_pages_are_texts() {
    let fair = Fair::start(10, 5).await;
    let pages = "/debug/api_priority_and_fairness";
    for (page, header) in [
        ("dump_priority_levels", "PriorityLevelName"),
        ("dump_queues", "TotalWorkSum"),
        ("dump_requests", "FlowDistingsher"),
        ("dump_requests?includeRequestDetails=1", "SubResource"),
    ] {
        let reply = fair.api.get(&format!("{pages}/{page}")).await;
        let text = String::from_utf8(reply.body.to_vec()).unwrap();
        assert_eq!(reply.code, 200, "{text}");
        assert!(text.lines().next().unwrap().contains(header), "{text}");
    }
    let levels = fair.api.get(&format!("{pages}/dump_priority_levels")).await;
    let text = String::from_utf8(levels.body.to_vec()).unwrap();
    assert!(
        text.contains("workload-high") && text.contains("tenants"),
        "{text}"
    );
}

/// Those of Kubernetes, with its labels.
#[tokio::test]
async fn every_metric_of_upstream_is_there() {
    let fair = Fair::start(1, 5).await;
    let text = super::metrics_text();
    for name in [
        "current_executing_requests",
        "current_executing_seats",
        "current_inqueue_requests",
        "current_inqueue_seats",
        "current_limit_seats",
        r#"current_r{priority_level="tenants"}"#,
        r#"demand_seats_bucket{priority_level="tenants",le="0.2"}"#,
        "dispatch_r",
        "dispatched_requests_total",
        "latest_s",
        "lower_limit_seats",
        r#"next_discounted_s_bounds{bound="max",priority_level="tenants"}"#,
        r#"next_s_bounds{bound="min",priority_level="tenants"}"#,
        "nominal_limit_seats",
        r#"priority_level_request_utilization_bucket{phase="executing",priority_level="exempt",le="0.001"}"#,
        r#"priority_level_request_utilization_count{phase="waiting",priority_level="tenants"}"#,
        r#"priority_level_seat_utilization_sum{phase="executing",priority_level="tenants"}"#,
        r#"read_vs_write_current_requests_count{phase="executing",request_kind="mutating"}"#,
        r#"read_vs_write_current_requests_count{phase="waiting",request_kind="readOnly"}"#,
        r#"request_dispatch_no_accommodation_total{flow_schema="tenants",priority_level="tenants"}"#,
        "request_execution_seconds",
        "request_queue_length_after_enqueue",
        "request_wait_duration_seconds",
        "upper_limit_seats",
        "watch_count_samples",
        "work_estimated_seats",
    ] {
        let is_there = text.contains(&format!("apiserver_flowcontrol_{name}"));
        assert!(is_there, "{name} is not there:\n{text}");
    }
    let reply = as_user(&fair.api, "jane", "tenants", "curl").await;
    assert_eq!(reply.code, 200);
    let seconds = |name| {
        let series = format!("{name}{{phase=\"executing\",priority_level=\"tenants\"}}");
        super::value(&series)
    };
    let utilization = seconds("priority_level_seat_utilization_sum");
    let time = seconds("priority_level_seat_utilization_count");
    assert!(
        utilization > 0.0 && utilization < time,
        "{utilization} of {time}"
    );
}
