//! The metrics of requests: number, duration and status.

use std::sync::LazyLock;
use std::time::Instant;

use prometheus::{HistogramVec, IntCounterVec};
use setpoint_codec::Kind;

use setpoint_model::Verb;

use super::in_flight::InFlight;
use super::{counters, histograms};

/// The buckets of this metric in Kubernetes.
const SECONDS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];

/// The value of the label `component`: there is only one component of an API server.
pub(super) const COMPONENT: &str = "apiserver";

/// The labels of a request; the counter has its `code`, too.
const LABELS: &[&str] = &[
    "verb",
    "dry_run",
    "group",
    "version",
    "resource",
    "subresource",
    "scope",
    "component",
];

static REQUESTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let labels = [LABELS, &["code"]].concat();
    let help = "Requests by verb, resource and HTTP status.";
    counters("apiserver_request_total", help, &labels)
});

static DURATION: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help = "Seconds from a request to its response; watches are not observed.";
    histograms("apiserver_request_duration_seconds", help, LABELS, SECONDS)
});

/// The verb and the target of a request, for its labels.
#[derive(Clone, Copy)]
pub(crate) struct RequestLabels<'a> {
    /// `None` if the method is not a verb of the API; then the method is the label.
    pub verb: Option<Verb>,
    pub method: &'a str,
    pub dry_run: bool,
    /// `None` for requests that name no kind, such as discovery.
    pub kind: Option<&'a Kind>,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
}

impl<'a> RequestLabels<'a> {
    /// Returns the label of the verb. Unknown methods share one, so that clients cannot create any number of series.
    fn verb(&self) -> &'a str {
        const KNOWN: [&str; 8] = [
            "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT",
        ];
        match self.verb {
            Some(verb) => verb.name(),
            None if KNOWN.contains(&self.method) => self.method,
            None => "other",
        }
    }

    /// Returns the label of the scope: one object, one namespace, or the cluster.
    fn scope(&self) -> &'static str {
        let one = !self.name.is_empty() || self.verb == Some(Verb::Create);
        match (self.kind, one, self.namespace) {
            (None, ..) => "",
            (_, true, _) => "resource",
            (_, _, "") => "cluster",
            _ => "namespace",
        }
    }

    fn labels(&self) -> [&'a str; 8] {
        let dry_run = if self.dry_run { "All" } else { "" };
        let [group, version, resource] = of_kind(self.kind);
        [
            self.verb(),
            dry_run,
            group,
            version,
            resource,
            self.subresource,
            self.scope(),
            COMPONENT,
        ]
    }

    /// Returns the labels of an open watch.
    pub(super) fn long_running(&self) -> [&'a str; 7] {
        let [group, version, resource] = of_kind(self.kind);
        [
            self.verb(),
            group,
            version,
            resource,
            self.subresource,
            self.scope(),
            COMPONENT,
        ]
    }
}

/// Returns the labels `group`, `version` and `resource`.
pub(super) fn of_kind(kind: Option<&Kind>) -> [&str; 3] {
    kind.map_or([""; 3], |kind| [&kind.group, &kind.version, &kind.plural])
}

/// A request in flight. If a panic drops it, it counts as an internal error; if its caller cancels it, it does not
/// count.
pub(crate) struct Request<'a> {
    info: RequestLabels<'a>,
    started: Instant,
    _in_flight: Option<InFlight>,
}

impl<'a> Request<'a> {
    /// Counts a request as in flight.
    pub(crate) fn begin(info: RequestLabels<'a>) -> Self {
        let ends = info.verb != Some(Verb::Watch);
        let writes = match info.verb {
            Some(verb) => verb.writes(),
            None => !matches!(info.method, "GET" | "HEAD"),
        };
        Self {
            info,
            started: Instant::now(),
            _in_flight: ends.then(|| InFlight::begin(writes)),
        }
    }

    /// Counts the response, or the start of a watch.
    pub(crate) fn answered(self, code: u16) {
        self.count(code);
    }

    fn count(&self, code: u16) {
        let [a, b, c, d, e, f, g, h] = self.info.labels();
        let status = code.to_string();
        REQUESTS
            .with_label_values(&[a, b, c, d, e, f, g, h, status.as_str()])
            .inc();
        if self.info.verb != Some(Verb::Watch) {
            let duration = DURATION.with_label_values(&[a, b, c, d, e, f, g, h]);
            duration.observe(self.started.elapsed().as_secs_f64());
        }
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.count(500);
        }
    }
}

#[cfg(test)]
mod tests {
    use setpoint_codec::kinds;

    use super::*;

    fn scope(verb: Verb, namespace: &str, name: &str) -> &'static str {
        let info = RequestLabels {
            verb: Some(verb),
            method: "",
            dry_run: false,
            kind: kinds().by_resource("pods"),
            subresource: "",
            namespace,
            name,
        };
        info.scope()
    }

    #[test]
    fn the_scope_is_the_object_the_namespace_or_the_cluster() {
        assert_eq!(scope(Verb::List, "", ""), "cluster");
        assert_eq!(scope(Verb::List, "default", ""), "namespace");
        assert_eq!(scope(Verb::Get, "default", "web"), "resource");
        assert_eq!(scope(Verb::Create, "default", ""), "resource");
    }

    #[test]
    fn unknown_methods_share_a_label() {
        let label = |method| {
            let info = RequestLabels {
                verb: None,
                method,
                dry_run: false,
                kind: None,
                subresource: "",
                namespace: "",
                name: "",
            };
            info.verb()
        };
        assert_eq!((label("GET"), label("BREW")), ("GET", "other"));
    }
}
