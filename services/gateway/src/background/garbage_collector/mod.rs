//! The garbage collector, within the gateway until it is a service: deletes the dependants of deleted owners, or orphans
//! them.
//!
//! Every gateway runs it. Each write has the uid of its object as a precondition, so it is safe to repeat.

mod attempt;
mod graph;
mod live;
mod node;
mod owner;
mod queue;
mod report;
mod task;

use std::collections::HashSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::ready;
use futures::stream::{FuturesUnordered, SelectAll};
use setpoint_codec::{Kind, kind_of};
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::meta::OwnerReference;
use setpoint_proto::{ApiError, EventType};
use tokio::time::sleep_until;

use crate::registry::{AtLeast, Event, Filter, Registry, Start, Watch, WatchSpec};
use attempt::References;
use graph::Graph;
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
    let mut watched = HashSet::new();
    let mut events = SelectAll::new();
    watch_new(registry, &mut watched, &mut events).await?;
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
            Some(event) = events.next() => {
                let event = event?;
                collector.handle(&event).await;
                if event.object.kind == kind_of::<CustomResourceDefinition>() {
                    watch_new(registry, &mut watched, &mut events).await?;
                }
            }
            Some((task, outcome)) = running.next() => collector.finish(task, outcome),
            () = async { sleep_until(due.expect("the branch has the guard `is_some`")).await }, if due.is_some() => {
                collector.queue.add_due();
            }
        }
    }
}

/// Adds watches of the kinds that are not watched yet, and forgets kinds that are not served any more.
async fn watch_new(
    registry: &Registry,
    watched: &mut HashSet<&'static str>,
    events: &mut SelectAll<Watch>,
) -> Result<(), ApiError> {
    let present: Vec<_> = registry.cache().kinds().iter().collect();
    let folders: HashSet<&str> = present.iter().map(|kind| kind.stored_as.as_str()).collect();
    watched.retain(|folder| folders.contains(folder));
    for kind in present {
        if watched.insert(&kind.stored_as) {
            events.push(watch(registry, kind).await?);
        }
    }
    Ok(())
}

/// Watches a kind. The watch of a custom kind ends with its definition.
async fn watch(registry: &Registry, kind: &'static Kind) -> Result<Watch, ApiError> {
    let spec = WatchSpec {
        filter: Filter::all(kind, ""),
        start: Start::Initial(AtLeast::Any),
        bookmarks: false,
    };
    let events = registry.cache().watch(spec).await?;
    if !kind.is_custom() {
        return Ok(events);
    }
    let kinds = registry.cache().kinds().clone();
    let is_defined = move || kinds.custom().by_folder(&kind.stored_as).is_some();
    let defined = events.take_while(move |event| ready(event.is_ok() || is_defined()));
    Ok(defined.boxed())
}

/// The graph of objects, and the queue of tasks.
struct Collector<'r> {
    registry: &'r Registry,
    graph: Graph,
    queue: Queue,
}

impl<'r> Collector<'r> {
    fn new(registry: &'r Registry) -> Self {
        Self {
            registry,
            graph: Graph::default(),
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
            Action::Report(..) => GraphState::default(),
        };
        Some((task, graph))
    }

    fn finish(&mut self, task: Task, outcome: Outcome) {
        match outcome {
            Outcome::Failed => self.queue.failed(task),
            Outcome::Done => self.queue.done(&task),
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
    }

    async fn handle_existing(&mut self, node: Node, event: &Event) {
        let change = self.graph.insert(node.clone());
        self.enqueue_unblocked(change.unblocked, event);
        if change.references {
            self.check_references(&node, event).await;
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
        node.location_of(self.registry.cache().kinds(), owner) == Location::Invalid
            || known.is_some_and(elsewhere)
    }
}
