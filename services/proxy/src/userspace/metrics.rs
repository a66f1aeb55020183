//! Metrics of forwarded connections and flows.

use std::sync::LazyLock;

use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec};
use setpoint_telemetry::metrics::{counters, gauges};

use crate::Protocol;

static OPEN: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let help = "Forwarded connections and flows that are open.";
    gauges("setpoint_proxy_sessions", help, &["protocol"])
});
static BYTES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Bytes that were forwarded.";
    let labels = &["protocol", "direction"];
    counters("setpoint_proxy_session_bytes_total", help, labels)
});
static REFUSED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Connections and datagrams that were accepted and then refused.";
    let labels = &["protocol", "reason"];
    counters("setpoint_proxy_refused_sessions_total", help, labels)
});
static FAILURES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Connections to endpoints that failed.";
    counters("setpoint_proxy_connect_failures_total", help, &["protocol"])
});

/// The reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There are too many.
    Limit,
    /// The client may not, or no endpoint is for it.
    Policy,
    /// No endpoint answers.
    Endpoints,
}

/// The metrics of a protocol.
#[derive(Clone, Debug)]
pub struct Metrics {
    protocol: &'static str,
    open: IntGauge,
    /// Bytes to endpoints.
    pub sent: IntCounter,
    /// Bytes to clients.
    pub received: IntCounter,
    /// Connections to endpoints that failed.
    pub failures: IntCounter,
}

impl Metrics {
    /// Returns the metrics of a protocol.
    pub fn of(protocol: Protocol) -> Self {
        let protocol = protocol.name();
        Self {
            protocol,
            open: OPEN.with_label_values(&[protocol]),
            sent: BYTES.with_label_values(&[protocol, "sent"]),
            received: BYTES.with_label_values(&[protocol, "received"]),
            failures: FAILURES.with_label_values(&[protocol]),
        }
    }

    /// Counts a session as open until the guard is dropped.
    pub fn open(&self) -> Open {
        self.open.inc();
        Open(self.open.clone())
    }

    /// Counts a session that is refused.
    pub fn refused(&self, reason: Reason) {
        let reason = match reason {
            Reason::Limit => "limit",
            Reason::Policy => "policy",
            Reason::Endpoints => "endpoints",
        };
        REFUSED.with_label_values(&[self.protocol, reason]).inc();
    }
}

/// A session that is open.
#[derive(Debug)]
pub struct Open(IntGauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
