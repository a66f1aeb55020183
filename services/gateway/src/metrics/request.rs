//! Requests: how many, how long, with what outcome.

use std::sync::LazyLock;
use std::time::Instant;

use prometheus::{HistogramVec, IntCounterVec};
use setpoint_codec::Kind;

use setpoint_model::Verb;

use super::in_flight::InFlight;
use super::{counters, histograms};

/// Upstream's, for this name.
const SECONDS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];

/// Which component of the API server answered. There is one.
pub(super) const COMPONENT: &str = "apiserver";

static REQUESTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let labels = [
        "verb",
        "dry_run",
        "group",
        "version",
        "resource",
        "subresource",
        "scope",
        "component",
        "code",
    ];
    let help = "Requests answered, by what was asked of what and by HTTP status.";
    counters("apiserver_request_total", help, &labels)
});

static DURATION: LazyLock<HistogramVec> = LazyLock::new(|| {
    let labels = [
        "verb",
        "dry_run",
        "group",
        "version",
        "resource",
        "subresource",
        "scope",
        "component",
    ];
    let help = "Seconds until a request was answered; watches, which have no end, are left out.";
    histograms("apiserver_request_duration_seconds", help, &labels, SECONDS)
});

/// The labels of a request, as upstream's `RequestInfo`.
#[derive(Clone, Copy)]
pub(crate) struct RequestInfo<'a> {
    /// `None` where the method means nothing: then it is told by its own name.
    pub verb: Option<Verb>,
    pub method: &'a str,
    pub dry_run: bool,
    /// `None` for what is no object, such as discovery.
    pub kind: Option<&'a Kind>,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
}

impl<'a> RequestInfo<'a> {
    /// Methods that nobody knows are told as one: whoever asks must not choose how many labels there are.
    fn verb(&self) -> &'a str {
        const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
        match self.verb {
            Some(verb) => verb.name(),
            None if KNOWN.contains(&self.method) => self.method,
            None => "other",
        }
    }

    /// How far it reaches: one object, one namespace, or the cluster.
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

    /// The labels of a watch that is open.
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

/// Group, version and resource.
pub(super) fn of_kind(kind: Option<&Kind>) -> [&str; 3] {
    kind.map_or([""; 3], |kind| [&kind.group, &kind.version, &kind.plural])
}

/// A request that is being answered. One that is dropped by a panic is counted as an internal error; any other one was given
/// up by its caller, and is not counted as answered.
pub(crate) struct Request<'a> {
    info: RequestInfo<'a>,
    started: Instant,
    _in_flight: Option<InFlight>,
}

impl<'a> Request<'a> {
    /// It begins.
    pub(crate) fn begin(info: RequestInfo<'a>) -> Self {
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

    /// It has its answer; a watch has begun.
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
        let info = RequestInfo {
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
    fn the_scope_says_how_far_a_request_reaches() {
        assert_eq!(scope(Verb::List, "", ""), "cluster");
        assert_eq!(scope(Verb::List, "default", ""), "namespace");
        assert_eq!(scope(Verb::Get, "default", "web"), "resource");
        assert_eq!(scope(Verb::Create, "default", ""), "resource");
    }

    #[test]
    fn methods_that_nobody_knows_share_a_label() {
        let told = |method| {
            let info = RequestInfo {
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
        assert_eq!((told("GET"), told("BREW")), ("GET", "other"));
    }
}
