//! The interim garbage collector, until there is a service for it: deletes what a deleted owner leaves behind, sets
//! free or waits for dependants where the deletion asked for that, and empties namespaces that end.
//!
//! Every gateway runs it. What it does is safe to do twice: each write names the uid that it means.

mod chore;
mod dependants;
mod member;

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{FuturesUnordered, SelectAll, select_all};
use setpoint_codec::kinds;
use setpoint_proto::core::Namespace;
use setpoint_proto::{ApiError, EventType, Resource as _};
use tokio::time::interval;

use super::{AtLeast, Event, Filter, Registry, Start, Watch, WatchSpec, metadata};
use chore::{Chore, Task};
use dependants::Dependants;
use member::Member;

/// Between attempts to follow the cache, and to do again what failed.
const PAUSE: Duration = Duration::from_secs(1);
/// Chores at once: the store has room for 64 writes, and others want to write too.
const AT_ONCE: usize = 16;

/// Keeps collecting, for ever.
pub(super) async fn run(registry: &Registry) {
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
    let mut again = interval(PAUSE);
    loop {
        while running.len() < AT_ONCE
            && let Some(chore) = house.next()
        {
            running.push(chore::perform(registry, chore));
        }
        tokio::select! {
            Some(event) = events.next() => house.see(&event?).await,
            Some(failed) = running.next() => house.failed.extend(failed),
            _ = again.tick(), if !house.failed.is_empty() => house.waiting.extend(house.failed.drain(..)),
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
        watches.push(registry.cache.watch(spec).await?);
    }
    Ok(select_all(watches))
}

/// What is known, and what is to be done about it.
struct House<'r> {
    registry: &'r Registry,
    dependants: Dependants,
    /// Namespaces that are being emptied.
    ending: HashSet<String>,
    waiting: VecDeque<Chore>,
    failed: Vec<Chore>,
}

impl<'r> House<'r> {
    fn new(registry: &'r Registry) -> Self {
        Self {
            registry,
            dependants: Dependants::default(),
            ending: HashSet::new(),
            waiting: VecDeque::new(),
            failed: Vec::new(),
        }
    }

    fn next(&mut self) -> Option<Chore> {
        self.waiting.pop_front()
    }

    fn plan(&mut self, task: Task, event: &Event) {
        let because = event.object.cause();
        self.waiting.push_back(Chore { task, because });
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
        for dependant in self.dependants.remove_owner(&member.uid) {
            self.plan(Task::Abandoned(dependant), event);
        }
        for owner in self.dependants.remove(member) {
            self.plan(Task::End(owner), event);
        }
        if member.kind.type_url == Namespace::TYPE_URL {
            self.ending.remove(&member.key.name);
        }
        if self.ending.contains(&member.key.namespace) {
            self.plan(Task::Empty(member.key.namespace.clone()), event);
        }
    }

    async fn see_there(&mut self, member: Member, event: &Event) {
        let new = self.dependants.add(&member);
        if new && chore::is_abandoned(self.registry, &member, AtLeast::Any).await == Ok(true) {
            self.plan(Task::Abandoned(member.clone()), event);
        }
        if !member.ending {
            return;
        }
        if member.kind.type_url == Namespace::TYPE_URL {
            self.ending.insert(member.key.name.clone());
            self.plan(Task::Empty(member.key.name.clone()), event);
        }
        let held = |finalizer: &String| {
            [metadata::ORPHAN, metadata::FOREGROUND].contains(&finalizer.as_str())
        };
        if member.finalizers.iter().any(held) {
            self.plan(Task::End(member), event);
        }
    }
}
