//! The open watches, which make writes take more seats.

use std::sync::Arc;

use futures::{Stream, StreamExt as _};
use parking_lot::Mutex;
use setpoint_fairness::{WatchCounts, Watched};

use super::FlowControl;
use crate::request::{Attributes, Resource};

/// The field by which the watch cache finds the watchers of a node. Only Pods can be selected by it.
const NODE_NAME: &str = "spec.nodeName";

/// An open watch. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct CountedWatch {
    counts: Arc<Mutex<WatchCounts>>,
    watched: Option<Watched>,
}

impl FlowControl {
    /// Counts a watch as open. Those of the Pods of one node are told of few writes, and do not count.
    pub(crate) fn begin_watch(&self, asked: &Attributes) -> CountedWatch {
        let watched = asked.resource.as_ref().map(watched);
        let watched = watched.filter(|_| !of_node(asked));
        if let Some(watched) = &watched {
            self.watches.lock().begin(watched.clone());
        }
        CountedWatch {
            counts: self.watches.clone(),
            watched,
        }
    }

    /// Returns the number of watches that are told of a write.
    pub(super) fn told(&self, written: &Resource) -> usize {
        self.watches.lock().told(watched(written))
    }
}

impl CountedWatch {
    /// Returns the same stream. The watch is open until the stream is dropped.
    pub(crate) fn over<T>(self, events: impl Stream<Item = T>) -> impl Stream<Item = T> {
        events.inspect(move |_| {
            let _open = &self;
        })
    }
}

impl Drop for CountedWatch {
    fn drop(&mut self) {
        if let Some(watched) = &self.watched {
            self.counts.lock().end(watched);
        }
    }
}

fn of_node(asked: &Attributes) -> bool {
    let mut fields = asked.fields.iter();
    fields.any(|one| !one.value.is_empty() && asked.selects(NODE_NAME, &one.value))
}

fn watched(resource: &Resource) -> Watched {
    Watched {
        group: resource.group.clone(),
        resource: resource.resource.clone(),
        namespace: resource.namespace.clone(),
        name: resource.name.clone(),
    }
}
