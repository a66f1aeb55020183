//! The metrics of Pod security.

use std::sync::LazyLock;

use prometheus::IntCounterVec;

use super::counters;

/// The labels of a request.
#[derive(Clone, Copy)]
pub(crate) struct PodSecurityRequest<'a> {
    /// `create` or `update`.
    pub operation: &'static str,
    /// `pod`, or `controller` for a kind with a template.
    pub resource: &'static str,
    pub subresource: &'a str,
}

static EVALUATIONS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help =
        "Number of policy evaluations that occurred, not counting ignored or exempt requests.";
    let labels = [
        "decision",
        "policy_level",
        "policy_version",
        "mode",
        "request_operation",
        "resource",
        "subresource",
    ];
    counters("pod_security_evaluations_total", help, &labels)
});

static EXEMPTIONS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Number of exempt requests, not counting ignored or out of scope requests.";
    let labels = ["request_operation", "resource", "subresource"];
    counters("pod_security_exemptions_total", help, &labels)
});

static ERRORS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Number of errors preventing normal evaluation. Non-fatal errors may result in the latest restricted profile being used for evaluation.";
    let labels = ["fatal", "request_operation", "resource", "subresource"];
    counters("pod_security_errors_total", help, &labels)
});

/// Counts an evaluation in a mode. The version must be one of a bounded number.
pub(crate) fn pod_security_evaluated(
    request: PodSecurityRequest<'_>,
    is_allowed: bool,
    [level, version, mode]: [&str; 3],
) {
    let decision = if is_allowed { "allow" } else { "deny" };
    let labels = [
        decision,
        level,
        version,
        mode,
        request.operation,
        request.resource,
        request.subresource,
    ];
    EVALUATIONS.with_label_values(&labels).inc();
}

/// Counts an exempt request.
pub(crate) fn pod_security_exempted(request: PodSecurityRequest<'_>) {
    let labels = [request.operation, request.resource, request.subresource];
    EXEMPTIONS.with_label_values(&labels).inc();
}

/// Counts an error. A fatal one refuses a Pod, or leaves a template without evaluation.
pub(crate) fn pod_security_failed(request: PodSecurityRequest<'_>, is_fatal: bool) {
    let fatal = if is_fatal { "true" } else { "false" };
    let labels = [
        fatal,
        request.operation,
        request.resource,
        request.subresource,
    ];
    ERRORS.with_label_values(&labels).inc();
}
