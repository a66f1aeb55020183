//! Traces and metrics of requests.

use http::Request;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::http::api::{Api, CONFIGMAPS, configmap};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

#[tokio::test]
async fn a_write_continues_the_callers_trace_and_returns_its_span() {
    let provider = SdkTracerProvider::builder().build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let _subscriber = tracing_subscriber::registry().with(layer).set_default();
    let api = Api::start().await;
    let parent = format!("00-{TRACE}-{SPAN}-01");
    let request = Request::post(CONFIGMAPS).header("traceparent", &parent);
    let reply = api.send(request, configmap("a").to_string()).await;
    let returned = reply.headers["traceparent"].to_str().unwrap();
    assert_eq!(returned.split('-').nth(1), Some(TRACE));
    assert_ne!(returned.split('-').nth(2), Some(SPAN));
}

#[tokio::test]
async fn requests_are_counted_by_verb_and_resource() {
    let api = Api::start().await;
    api.configmap("a").await;
    api.get(&format!("{CONFIGMAPS}/none"))
        .await
        .refused(404, "NotFound");
    let families = prometheus::gather();
    let counted = families
        .iter()
        .find(|family| family.name() == "apiserver_request_total")
        .unwrap();
    let count = |verb: &str, code: &str| {
        let wanted = [
            ("verb", verb),
            ("code", code),
            ("resource", "configmaps"),
            ("version", "v1"),
        ];
        let mut counts = counted.get_metric().iter();
        let found = counts.find(|metric| {
            let labels = metric.get_label();
            wanted.iter().all(|(name, value)| {
                labels
                    .iter()
                    .any(|label| label.name() == *name && label.value() == *value)
            })
        });
        found.map_or(0.0, |metric| metric.get_counter().get_value())
    };
    assert_eq!(count("POST", "201"), 1.0);
    assert_eq!(count("GET", "404"), 1.0);
    assert_eq!(count("GET", "200"), 0.0);
}

/// Without a tracer, the caller's span is returned in the response and stored in the object's cause.
#[tokio::test]
async fn without_a_tracer_the_callers_trace_is_passed_on() {
    let api = Api::start().await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (sent, expected) in [(parent, Some(parent)), ("nonsense", None)] {
        let request = Request::post(CONFIGMAPS).header("traceparent", sent);
        let reply = api.send(request, configmap(&sent[..2]).to_string()).await;
        let found = reply.headers.get("traceparent");
        assert_eq!(found.map(|text| text.to_str().unwrap()), expected);
    }
}
