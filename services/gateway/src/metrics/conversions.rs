//! The metrics of conversion webhooks: calls, failures and duration.

use std::sync::LazyLock;
use std::time::Duration;

use prometheus::{HistogramVec, IntCounterVec, exponential_buckets};

use super::{counters, histograms};

/// The buckets of this metric in Kubernetes.
const SECONDS: &[f64] = &[
    0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0,
];
const RESULT: &[&str] = &["result", "failure_type"];

static REQUESTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Calls of conversion webhooks by result and, for a failure, its type.";
    counters("apiserver_conversion_webhook_request_total", help, RESULT)
});

static DURATION: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help = "Seconds of a call of a conversion webhook.";
    let name = "apiserver_conversion_webhook_duration_seconds";
    histograms(name, help, RESULT, SECONDS)
});

static BY_DEFINITION: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help =
        "Seconds of a conversion by a webhook, by the name of the definition and the versions.";
    let labels = ["crd_name", "from_version", "to_version", "succeeded"];
    let buckets = exponential_buckets(0.001, 2.0, 15).unwrap_or_default();
    let name = "apiserver_crd_conversion_webhook_duration_seconds";
    histograms(name, help, &labels, &buckets)
});

/// Observes a call, with the type of its failure if it failed.
pub(crate) fn converted(after: Duration, failure: Option<&str>) {
    let result = match failure {
        None => "success",
        Some(_) => "failure",
    };
    let labels = [result, failure.unwrap_or_default()];
    REQUESTS.with_label_values(&labels).inc();
    let seconds = after.as_secs_f64();
    DURATION.with_label_values(&labels).observe(seconds);
}

/// Observes a conversion between two versions.
pub(crate) fn converted_versions(
    definition: &str,
    [from, to]: [&str; 2],
    after: Duration,
    succeeded: bool,
) {
    let succeeded = if succeeded { "true" } else { "false" };
    let labels = [definition, from, to, succeeded];
    let seconds = after.as_secs_f64();
    BY_DEFINITION.with_label_values(&labels).observe(seconds);
}
