//! The metrics of authorization.

use std::sync::LazyLock;

use prometheus::{IntCounter, IntCounterVec};

use super::counters;

/// The result of an authorization, with upstream's names. No mode denies a request, only webhooks do; at most, none
/// allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Authorization {
    Allowed,
    Denied,
    NoOpinion,
    Error,
}

static ATTEMPTS: LazyLock<[IntCounter; 4]> = LazyLock::new(|| {
    let help = "Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or 'error'.";
    let attempts = counters("authorization_attempts_total", help, &["result"]);
    ["allowed", "denied", "no-opinion", "error"].map(|result| attempts.with_label_values(&[result]))
});

static REFUSED_SERVICES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Requests of Setpoint's own services, controllers and agents that were not allowed. Each is an error of their roles.";
    counters(
        "setpoint_refused_service_requests_total",
        help,
        &["service"],
    )
});

/// Counts an authorization.
pub(crate) fn authorized(result: Authorization) {
    let [allowed, denied, no_opinion, error] = &*ATTEMPTS;
    match result {
        Authorization::Allowed => allowed.inc(),
        Authorization::Denied => denied.inc(),
        Authorization::NoOpinion => no_opinion.inc(),
        Authorization::Error => error.inc(),
    }
}

/// Counts a request of a service that was not allowed.
pub(crate) fn refused_service(service: &str) {
    REFUSED_SERVICES.with_label_values(&[service]).inc();
}
