//! The metrics of watches: open ones and events sent.

use std::sync::LazyLock;

use futures::{Stream, StreamExt as _};
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

use super::request::of_kind;
use super::{RequestLabels, counters, gauges};

static LONG_RUNNING: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let labels = [
        "verb",
        "group",
        "version",
        "resource",
        "subresource",
        "scope",
        "component",
    ];
    gauges("apiserver_longrunning_requests", "Open watches.", &labels)
});

static EVENTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Events sent to watchers, counted once per watcher.";
    let labels = ["group", "version", "resource"];
    counters("apiserver_watch_events_total", help, &labels)
});

/// An open watch; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watching {
    open: IntGauge,
    events: IntCounter,
}

impl Watching {
    /// Counts a watch as open.
    pub(crate) fn begin(info: RequestLabels<'_>) -> Self {
        let open = LONG_RUNNING.with_label_values(&info.long_running());
        open.inc();
        let events = EVENTS.with_label_values(&of_kind(info.kind));
        Self { open, events }
    }

    /// Returns the same stream, with its events counted. The watch is open until the stream is dropped.
    pub(crate) fn over<T, E>(
        self,
        events: impl Stream<Item = Result<T, E>>,
    ) -> impl Stream<Item = Result<T, E>> {
        events.inspect(move |event| {
            if event.is_ok() {
                self.events.inc();
            }
        })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.open.dec();
    }
}
