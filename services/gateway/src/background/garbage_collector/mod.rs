//! The garbage collector, within the gateway until it is a service: deletes the dependants of deleted owners, or orphans
//! them, and deletes the content of namespaces.
//!
//! Every gateway runs it. Each write has the uid of its object as a precondition, so it is safe to repeat.

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
use node::{Location, Node};
use queue::Queue;
use task::{Action, GraphState, Outcome, Task};

/// The delay before the watches are restarted.
const RESTART_DELAY: Duration = Duration::from_secs(1);
/// The number of concurrent tasks: a quarter of the writes that the store executes concurrently.
const CONCURRENCY: usize = 16;

/// Runs the garbage collector until dropped.
pub(crate) async fn run(registry: &Registry) {
    loop {
        if let Err(error) = follow(registry).await {
            tracing::debug!(%error, "a watch of the garbage collector ended; restarting");
        }
        tokio::time::sleep(RESTART_DELAY).await;
    }
}

/// Watches every kind and performs tasks until a watch ends.
async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let mut events = watch_all(registry).await?;
    let mut collector = Collector::new(registry);
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < CONCURRENCY
            && let Some((task, graph)) = collector.next()
        {
            running.push(task::perform(registry, task, graph));
        }
        let due = collector.queue.next_due();
        tokio::select! {
            Some(event) = events.next() => collector.handle(&event?).await,
            Some((task, outcome)) = running.next() => collector.finish(task, outcome),
            () = async { sleep_until(due.expect("the branch has the guard `is_some`")).await }, if due.is_some() => {
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

/// The graph of objects, and the queue of tasks.
struct Collector<'r> {
    registry: &'r Registry,
    graph: Graph,
    /// The namespaces that are being deleted.
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

    fn next(&mut self) -> Option<(Task, GraphState)> {
        let task = self.queue.next()?;
        let graph = match &task.action {
            Action::Attempt(node) => GraphState {
                has_dependants: self.graph.has_dependants(&node.uid),
                ..GraphState::default()
            },
            Action::Finalize(node) => GraphState {
                in_cycle: self.graph.is_in_cycle(&node.uid),
                ..GraphState::default()
            },
            Action::DeleteContent(_) | Action::Report(..) => GraphState::default(),
        };
        Some((task, graph))
    }

    fn finish(&mut self, task: Task, outcome: Outcome) {
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

    fn enqueue(&mut self, action: Action, event: &Event) {
        let cause = event.object.cause();
        self.queue.add(Task { action, cause });
    }

    async fn handle(&mut self, event: &Event) {
        let Some(node) = Node::of(&event.object) else {
            return;
        };
        match event.r#type {
            EventType::Deleted => self.handle_deleted(&node, event),
            _ => self.handle_existing(node, event).await,
        }
    }

    fn handle_deleted(&mut self, node: &Node, event: &Event) {
        let (dependants, owners) = self.graph.remove(&node.uid);
        for dependant in dependants {
            self.enqueue(Action::Attempt(dependant), event);
        }
        self.enqueue_unblocked(owners, event);
        if node.is_namespace() {
            self.ending.remove(&node.key.name);
        }
        let namespace = &node.key.namespace;
        if self.ending.contains(namespace) && self.was_last(node) {
            self.enqueue(Action::DeleteContent(namespace.clone()), event);
        }
    }

    /// Returns whether the deleted node was the last Pod of its namespace, or the last object.
    fn was_last(&self, node: &Node) -> bool {
        let content = self.graph.content_of(&node.key.namespace);
        content == Content::default() || (node.is_pod() && content.pods == 0)
    }

    async fn handle_existing(&mut self, node: Node, event: &Event) {
        let change = self.graph.insert(node.clone());
        self.enqueue_unblocked(change.unblocked, event);
        if change.references {
            self.check_references(&node, event).await;
        }
        if !node.ending {
            return;
        }
        if node.is_namespace() {
            self.ending.insert(node.key.name.clone());
            self.enqueue(Action::DeleteContent(node.key.name.clone()), event);
        }
        if node.is_held_for_dependants() {
            self.enqueue(Action::Finalize(node), event);
        }
    }

    fn enqueue_unblocked(&mut self, owners: Vec<Node>, event: &Event) {
        for owner in owners.into_iter().filter(Node::waits_for_dependants) {
            self.enqueue(Action::Finalize(owner), event);
        }
    }

    async fn check_references(&mut self, node: &Node, event: &Event) {
        let invalid = node.owners.iter();
        let invalid = invalid.filter(|owner| self.names_other_namespace(node, owner));
        for owner in invalid.cloned().collect::<Vec<_>>() {
            self.enqueue(Action::Report(node.clone(), owner), event);
        }
        let references = References::of(self.registry, node, AtLeast::Any).await;
        // If the owners cannot be read, the attempt decides.
        let wanted = references.map_or(true, |references| references.want_attempt());
        if wanted && !node.ending {
            self.enqueue(Action::Attempt(node.clone()), event);
        }
    }

    /// Returns whether the reference names an owner in another namespace.
    fn names_other_namespace(&self, node: &Node, owner: &OwnerReference) -> bool {
        let known = self.graph.get(&owner.uid);
        let elsewhere =
            |known: &Node| known.kind.namespaced && known.key.namespace != node.key.namespace;
        node.location_of(owner) == Location::Invalid || known.is_some_and(elsewhere)
    }
}
