//! Watches: how many are open, and what they have been told.

use std::sync::LazyLock;

use futures::{Stream, StreamExt as _};
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

use super::request::of_kind;
use super::{RequestInfo, counters, gauges};

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
    gauges(
        "apiserver_longrunning_requests",
        "Watches that are open.",
        &labels,
    )
});

static EVENTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Events sent to watchers, each counted for every watcher.";
    let labels = ["group", "version", "resource"];
    counters("apiserver_watch_events_total", help, &labels)
});

/// A watch that is open for as long as this lives.
#[derive(Debug)]
pub(crate) struct Watching {
    open: IntGauge,
    events: IntCounter,
}

impl Watching {
    /// Counts one more.
    pub(crate) fn begin(info: RequestInfo<'_>) -> Self {
        let open = LONG_RUNNING.with_label_values(&info.long_running());
        open.inc();
        let events = EVENTS.with_label_values(&of_kind(info.kind));
        Self { open, events }
    }

    /// The same events; they are counted, and the watch counts as open until they are dropped.
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
