//! The metrics of authorization webhooks, with upstream's names, labels and buckets.

use std::sync::LazyLock;
use std::time::Duration;

use prometheus::{DEFAULT_BUCKETS, HistogramVec, IntCounterVec};

use super::{counters, histograms};

const NAME_AND_RESULT: [&str; 2] = ["name", "result"];
const TYPE_AND_NAME: [&str; 2] = ["type", "name"];
const WEBHOOK: &str = "Webhook";

static ASKED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "apiserver_authorization_webhook_evaluations_total",
        "Round-trips to authorization webhooks.",
        &NAME_AND_RESULT,
    )
});

static TOOK: LazyLock<HistogramVec> = LazyLock::new(|| {
    histograms(
        "apiserver_authorization_webhook_duration_seconds",
        "Request latency in seconds.",
        &NAME_AND_RESULT,
        DEFAULT_BUCKETS,
    )
});

static FAILED_OPEN: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "apiserver_authorization_webhook_evaluations_fail_open_total",
        "NoOpinion results due to webhook timeout or error.",
        &NAME_AND_RESULT,
    )
});

static CONDITION_ERRORS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "apiserver_authorization_match_condition_evaluation_errors_total",
        "Total number of errors when an authorization webhook encounters a match condition error split by authorizer type and name.",
        &TYPE_AND_NAME,
    )
});

static EXCLUSIONS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "apiserver_authorization_match_condition_exclusions_total",
        "Total number of exclusions when an authorization webhook is skipped because match conditions exclude it.",
        &TYPE_AND_NAME,
    )
});

static CONDITIONS_TOOK: LazyLock<HistogramVec> = LazyLock::new(|| {
    histograms(
        "apiserver_authorization_match_condition_evaluation_seconds",
        "Authorization match condition evaluation time in seconds, split by authorizer type and name.",
        &TYPE_AND_NAME,
        &[0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25],
    )
});

/// The metrics of a webhook, whose name a configuration file says.
pub(crate) struct WebhookAuthorizer {
    name: String,
}

impl WebhookAuthorizer {
    pub(crate) const fn new(name: String) -> Self {
        Self { name }
    }

    /// Records a call: `success`, `error` or `timeout`.
    pub(crate) fn asked(&self, result: &str, took: Duration) {
        let labels = [self.name.as_str(), result];
        ASKED.with_label_values(&labels).inc();
        TOOK.with_label_values(&labels).observe(took.as_secs_f64());
    }

    /// Counts a request about which the next authorizer decides, since there was no answer.
    pub(crate) fn failed_open(&self, result: &str) {
        FAILED_OPEN
            .with_label_values(&[self.name.as_str(), result])
            .inc();
    }

    /// Records the outcome of the conditions.
    pub(crate) fn matched(&self, outcome: &Result<bool, String>, took: Duration) {
        let labels = [WEBHOOK, self.name.as_str()];
        CONDITIONS_TOOK
            .with_label_values(&labels)
            .observe(took.as_secs_f64());
        match outcome {
            Ok(true) => {}
            Ok(false) => EXCLUSIONS.with_label_values(&labels).inc(),
            Err(_) => CONDITION_ERRORS.with_label_values(&labels).inc(),
        }
    }
}
