//! Metrics, with CoreDNS' names where they mean the same.

use std::net::SocketAddr;
use std::sync::LazyLock;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::RecordType;
use prometheus::{HistogramVec, IntCounterVec, IntGaugeVec, exponential_buckets};
use setpoint_telemetry::metrics::{UNIQUE, counters, gauges, histograms};
use tokio::time::Instant;

/// The label of questions about the cluster.
pub const CLUSTER: &str = "cluster";
/// The label of questions about other names.
pub const OTHERS: &str = ".";

/// The protocol of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A datagram.
    Udp,
    /// A connection.
    Tcp,
}

impl Transport {
    const fn label(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }
}

static REQUESTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let labels = &["proto", "type"];
    counters(
        "coredns_dns_requests_total",
        "Questions, by protocol and type.",
        labels,
    )
});
static RESPONSES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let labels = &["zone", "rcode"];
    counters(
        "coredns_dns_responses_total",
        "Answers, by zone and code.",
        labels,
    )
});
static DURATION: LazyLock<HistogramVec> = LazyLock::new(|| {
    let buckets = exponential_buckets(0.000_01, 4.0, 11).expect(UNIQUE);
    let help = "Seconds from a question to its answer.";
    histograms(
        "coredns_dns_request_duration_seconds",
        help,
        &["zone"],
        &buckets,
    )
});
static HITS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Answers from the cache, by type: success or denial.";
    counters("coredns_cache_hits_total", help, &["type"])
});
static MISSES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "coredns_cache_misses_total",
        "Questions that the cache has no answer to.",
        &[],
    )
});
static ENTRIES: LazyLock<IntGaugeVec> =
    LazyLock::new(|| gauges("coredns_cache_entries", "Answers in the cache.", &[]));
static FORWARDED: LazyLock<HistogramVec> = LazyLock::new(|| {
    let buckets = exponential_buckets(0.000_25, 4.0, 8).expect(UNIQUE);
    let help = "Seconds that an upstream server took, by address and code; the code is empty without an answer.";
    histograms(
        "coredns_proxy_request_duration_seconds",
        help,
        &["to", "rcode"],
        &buckets,
    )
});
static REJECTED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Questions that were not forwarded because too many wait.";
    counters("coredns_forward_max_concurrent_rejects_total", help, &[])
});
static IGNORED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "setpoint_dns_ignored_total",
        "Messages that are no questions.",
        &[],
    )
});

/// Returns the label of a type. Types have no end of numbers, so those that nobody asks for share one.
fn type_label(of: RecordType) -> &'static str {
    match of {
        RecordType::A => "A",
        RecordType::AAAA => "AAAA",
        RecordType::CNAME => "CNAME",
        RecordType::HTTPS => "HTTPS",
        RecordType::MX => "MX",
        RecordType::NS => "NS",
        RecordType::PTR => "PTR",
        RecordType::SOA => "SOA",
        RecordType::SRV => "SRV",
        RecordType::TXT => "TXT",
        _ => "other",
    }
}

fn code_label(code: ResponseCode) -> &'static str {
    match code {
        ResponseCode::NoError => "NOERROR",
        ResponseCode::NXDomain => "NXDOMAIN",
        ResponseCode::ServFail => "SERVFAIL",
        ResponseCode::Refused => "REFUSED",
        ResponseCode::FormErr => "FORMERR",
        ResponseCode::NotImp => "NOTIMP",
        _ => "other",
    }
}

/// Counts a question.
pub fn request(transport: Transport, of: RecordType) {
    let labels = [transport.label(), type_label(of)];
    REQUESTS.with_label_values(&labels).inc();
}

/// Counts a message that is refused without looking at its question.
pub fn invalid(transport: Transport) {
    REQUESTS
        .with_label_values(&[transport.label(), "other"])
        .inc();
    RESPONSES.with_label_values(&["dropped", "other"]).inc();
}

/// Counts a message without an answer.
pub fn ignored() {
    IGNORED.with_label_values::<&str>(&[]).inc();
}

/// Counts an answer.
pub fn response(zone: &'static str, code: ResponseCode, started: Instant) {
    RESPONSES.with_label_values(&[zone, code_label(code)]).inc();
    let seconds = started.elapsed().as_secs_f64();
    DURATION.with_label_values(&[zone]).observe(seconds);
}

/// Counts a look at the cache.
pub fn cache_read(found: Option<&Message>) {
    match found {
        None => MISSES.with_label_values::<&str>(&[]).inc(),
        Some(answer) => {
            let kind = if answer.answers.is_empty() {
                "denial"
            } else {
                "success"
            };
            HITS.with_label_values(&[kind]).inc();
        }
    }
}

/// Sets the size of the cache.
pub fn cache_size(entries: usize) {
    let entries = i64::try_from(entries).unwrap_or(i64::MAX);
    ENTRIES.with_label_values::<&str>(&[]).set(entries);
}

/// Counts a question to an upstream server.
pub fn forwarded(to: SocketAddr, started: Instant, answer: Option<&Message>) {
    let code = answer.map_or("", |answer| code_label(answer.metadata.response_code));
    let labels = [&*to.to_string(), code];
    FORWARDED
        .with_label_values(&labels)
        .observe(started.elapsed().as_secs_f64());
}

/// Counts a question that is not forwarded.
pub fn rejected() {
    REJECTED.with_label_values::<&str>(&[]).inc();
}
