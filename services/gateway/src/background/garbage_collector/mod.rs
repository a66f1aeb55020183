//! The interim garbage collector, until there is a service for it: deletes what a deleted owner leaves behind, sets
//! free or waits for dependants where the deletion asked for that, and empties namespaces that end.
//!
//! Every gateway runs it. What it does is safe to do twice: each write names the uid that it means.

mod attempt;
mod chore;
mod graph;
mod live;
mod member;
mod namespace;
mod owner;
mod queue;
mod report;

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
use chore::{Chore, Outcome, Standing, Task};
use graph::{Content, Graph};
use member::{Member, Place};
use queue::Queue;

/// Between attempts to follow the cache.
const PAUSE: Duration = Duration::from_secs(1);
/// Chores at once: the store has room for 64 writes, and others want to write too.
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
    let mut house = House::new(registry);
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < AT_ONCE
            && let Some((chore, standing)) = house.next()
        {
            running.push(chore::perform(registry, chore, standing));
        }
        let due = house.queue.next_due();
        tokio::select! {
            Some(event) = events.next() => house.see(&event?).await,
            Some((chore, outcome)) = running.next() => house.ended(chore, outcome),
            () = async { sleep_until(due.expect("the branch is guarded")).await }, if due.is_some() => {
                house.queue.add_due();
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
struct House<'r> {
    registry: &'r Registry,
    graph: Graph,
    /// Namespaces that are being emptied.
    ending: HashSet<String>,
    queue: Queue,
}

impl<'r> House<'r> {
    fn new(registry: &'r Registry) -> Self {
        Self {
            registry,
            graph: Graph::default(),
            ending: HashSet::new(),
            queue: Queue::default(),
        }
    }

    fn next(&mut self) -> Option<(Chore, Standing)> {
        let chore = self.queue.next()?;
        let standing = match &chore.task {
            Task::Attempt(member) => Standing {
                has_dependants: self.graph.has_dependants(&member.uid),
                ..Standing::default()
            },
            Task::End(member) => Standing {
                in_circle: self.graph.is_in_circle(&member.uid),
                ..Standing::default()
            },
            Task::Empty(_) | Task::Report(..) => Standing::default(),
        };
        Some((chore, standing))
    }

    fn ended(&mut self, chore: Chore, outcome: Outcome) {
        match outcome {
            Outcome::Failed => self.queue.failed(chore),
            Outcome::Done => self.queue.done(&chore),
            Outcome::Later(delay) => {
                self.queue.done(&chore);
                self.queue.delay(chore, delay);
            }
            Outcome::Then(tasks) => {
                self.queue.done(&chore);
                for task in tasks {
                    self.queue.add_follow_up(chore.followed_by(task));
                }
            }
        }
    }

    fn plan(&mut self, task: Task, event: &Event) {
        let because = event.object.cause();
        self.queue.add(Chore { task, because });
    }

    async fn see(&mut self, event: &Event) {
        let Some(member) = Member::of(&event.object) else {
            return;
        };
        match event.r#type {
            EventType::Deleted => self.see_gone(&member, event),
            _ => self.see_there(member, event).await,
        }
    }

    fn see_gone(&mut self, member: &Member, event: &Event) {
        let (dependants, owners) = self.graph.remove(&member.uid);
        for dependant in dependants {
            self.plan(Task::Attempt(dependant), event);
        }
        self.see_unblocked(owners, event);
        if member.is_namespace() {
            self.ending.remove(&member.key.name);
        }
        let namespace = &member.key.namespace;
        if self.ending.contains(namespace) && self.is_cleared(member) {
            self.plan(Task::Empty(namespace.clone()), event);
        }
    }

    /// Was this the last Pod of its namespace, or the last object?
    fn is_cleared(&self, member: &Member) -> bool {
        let content = self.graph.content_of(&member.key.namespace);
        content == Content::default() || (member.is_pod() && content.pods == 0)
    }

    async fn see_there(&mut self, member: Member, event: &Event) {
        let change = self.graph.insert(member.clone());
        self.see_unblocked(change.unblocked, event);
        if change.references {
            self.see_references(&member, event).await;
        }
        if !member.ending {
            return;
        }
        if member.is_namespace() {
            self.ending.insert(member.key.name.clone());
            self.plan(Task::Empty(member.key.name.clone()), event);
        }
        if member.is_held_for_dependants() {
            self.plan(Task::End(member), event);
        }
    }

    fn see_unblocked(&mut self, owners: Vec<Member>, event: &Event) {
        for owner in owners.into_iter().filter(Member::waits_for_dependants) {
            self.plan(Task::End(owner), event);
        }
    }

    async fn see_references(&mut self, member: &Member, event: &Event) {
        let invalid = member.owners.iter();
        let invalid = invalid.filter(|owner| self.is_elsewhere(member, owner));
        for owner in invalid.cloned().collect::<Vec<_>>() {
            self.plan(Task::Report(member.clone(), owner), event);
        }
        let references = References::of(self.registry, member, AtLeast::Any).await;
        // What cannot be found out here is found out by the attempt.
        let wanted = references.map_or(true, |references| references.want_attempt());
        if wanted && !member.ending {
            self.plan(Task::Attempt(member.clone()), event);
        }
    }

    /// Does the reference name an owner that is not in the member's namespace?
    fn is_elsewhere(&self, member: &Member, owner: &OwnerReference) -> bool {
        let known = self.graph.get(&owner.uid);
        let elsewhere =
            |known: &Member| known.kind.namespaced && known.key.namespace != member.key.namespace;
        member.place_of(owner) == Place::Invalid || known.is_some_and(elsewhere)
    }
}
