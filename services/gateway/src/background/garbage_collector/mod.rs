//! The interim garbage collector, until there is a service for it: deletes what a deleted owner leaves behind, sets
//! free or waits for dependants where the deletion asked for that, and empties namespaces that end.
//!
//! Every gateway runs it. What it does is safe to do twice: each write names the uid that it means.

mod attempt;
mod graph;
mod live;
mod namespace;
mod node;
mod owner;
mod queue;
mod report;
mod task;

use std::collections::HashSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{FuturesUnordered, SelectAll, select_all};
use setpoint_codec::kinds;
use setpoint_proto::meta::OwnerReference;
use setpoint_proto::{ApiError, EventType};
use tokio::time::sleep_until;

use crate::registry::{AtLeast, Event, Filter, Registry, Start, Watch, WatchSpec};
use attempt::References;
use graph::{Content, Graph};
use node::{Node, Place};
use queue::Queue;
use task::{Action, Outcome, Position, Task};

/// Between attempts to follow the cache.
const PAUSE: Duration = Duration::from_secs(1);
/// Tasks at once: the store has room for 64 writes, and others want to write too.
const AT_ONCE: usize = 16;

/// Keeps collecting, for ever.
pub(crate) async fn run(registry: &Registry) {
    loop {
        if let Err(error) = follow(registry).await {
            tracing::debug!(%error, "the garbage collector starts again");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Follows every kind until a watch ends.
async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let mut events = watch_all(registry).await?;
    let mut collector = Collector::new(registry);
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < AT_ONCE
            && let Some((task, position)) = collector.next()
        {
            running.push(task::perform(registry, task, position));
        }
        let due = collector.queue.next_due();
        tokio::select! {
            Some(event) = events.next() => collector.see(&event?).await,
            Some((task, outcome)) = running.next() => collector.ended(task, outcome),
            () = async { sleep_until(due.expect("the branch is guarded")).await }, if due.is_some() => {
                collector.queue.add_due();
            }
        }
    }
}

async fn watch_all(registry: &Registry) -> Result<SelectAll<Watch>, ApiError> {
    let mut watches = Vec::new();
    for kind in kinds().iter() {
        let spec = WatchSpec {
            filter: Filter::all(kind, ""),
            start: Start::Initial(AtLeast::Any),
            bookmarks: false,
        };
        watches.push(registry.cache().watch(spec).await?);
    }
    Ok(select_all(watches))
}

/// What is known, and what is to be done about it.
struct Collector<'r> {
    registry: &'r Registry,
    graph: Graph,
    /// Namespaces that are being emptied.
    ending: HashSet<String>,
    queue: Queue,
}

impl<'r> Collector<'r> {
    fn new(registry: &'r Registry) -> Self {
        Self {
            registry,
            graph: Graph::default(),
            ending: HashSet::new(),
            queue: Queue::default(),
        }
    }

    fn next(&mut self) -> Option<(Task, Position)> {
        let task = self.queue.next()?;
        let position = match &task.action {
            Action::Attempt(node) => Position {
                has_dependants: self.graph.has_dependants(&node.uid),
                ..Position::default()
            },
            Action::End(node) => Position {
                in_cycle: self.graph.is_in_cycle(&node.uid),
                ..Position::default()
            },
            Action::Empty(_) | Action::Report(..) => Position::default(),
        };
        Some((task, position))
    }

    fn ended(&mut self, task: Task, outcome: Outcome) {
        match outcome {
            Outcome::Failed => self.queue.failed(task),
            Outcome::Done => self.queue.done(&task),
            Outcome::Later(delay) => {
                self.queue.done(&task);
                self.queue.delay(task, delay);
            }
            Outcome::Then(actions) => {
                self.queue.done(&task);
                for action in actions {
                    self.queue.add_follow_up(task.followed_by(action));
                }
            }
        }
    }

    fn plan(&mut self, action: Action, event: &Event) {
        let cause = event.object.cause();
        self.queue.add(Task { action, cause });
    }

    async fn see(&mut self, event: &Event) {
        let Some(node) = Node::of(&event.object) else {
            return;
        };
        match event.r#type {
            EventType::Deleted => self.see_gone(&node, event),
            _ => self.see_there(node, event).await,
        }
    }

    fn see_gone(&mut self, node: &Node, event: &Event) {
        let (dependants, owners) = self.graph.remove(&node.uid);
        for dependant in dependants {
            self.plan(Action::Attempt(dependant), event);
        }
        self.see_unblocked(owners, event);
        if node.is_namespace() {
            self.ending.remove(&node.key.name);
        }
        let namespace = &node.key.namespace;
        if self.ending.contains(namespace) && self.is_cleared(node) {
            self.plan(Action::Empty(namespace.clone()), event);
        }
    }

    /// Was this the last Pod of its namespace, or the last object?
    fn is_cleared(&self, node: &Node) -> bool {
        let content = self.graph.content_of(&node.key.namespace);
        content == Content::default() || (node.is_pod() && content.pods == 0)
    }

    async fn see_there(&mut self, node: Node, event: &Event) {
        let change = self.graph.insert(node.clone());
        self.see_unblocked(change.unblocked, event);
        if change.references {
            self.see_references(&node, event).await;
        }
        if !node.ending {
            return;
        }
        if node.is_namespace() {
            self.ending.insert(node.key.name.clone());
            self.plan(Action::Empty(node.key.name.clone()), event);
        }
        if node.is_held_for_dependants() {
            self.plan(Action::End(node), event);
        }
    }

    fn see_unblocked(&mut self, owners: Vec<Node>, event: &Event) {
        for owner in owners.into_iter().filter(Node::waits_for_dependants) {
            self.plan(Action::End(owner), event);
        }
    }

    async fn see_references(&mut self, node: &Node, event: &Event) {
        let invalid = node.owners.iter();
        let invalid = invalid.filter(|owner| self.is_elsewhere(node, owner));
        for owner in invalid.cloned().collect::<Vec<_>>() {
            self.plan(Action::Report(node.clone(), owner), event);
        }
        let references = References::of(self.registry, node, AtLeast::Any).await;
        // What cannot be found out here is found out by the attempt.
        let wanted = references.map_or(true, |references| references.want_attempt());
        if wanted && !node.ending {
            self.plan(Action::Attempt(node.clone()), event);
        }
    }

    /// Does the reference name an owner that is not in the node's namespace?
    fn is_elsewhere(&self, node: &Node, owner: &OwnerReference) -> bool {
        let known = self.graph.get(&owner.uid);
        let elsewhere =
            |known: &Node| known.kind.namespaced && known.key.namespace != node.key.namespace;
        node.place_of(owner) == Place::Invalid || known.is_some_and(elsewhere)
    }
}
