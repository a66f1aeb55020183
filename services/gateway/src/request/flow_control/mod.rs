//! Priority and fairness: the seats of requests, by the FlowSchema that a request belongs to (upstream:
//! `WithPriorityAndFairness`).
//!
//! ```text
//!   user, attributes ──▶ schema ──▶ level ──▶ a seat, at once or after a wait ──▶ authorization, handler
//!                                     │
//!                                     └──▶ rejected: 429, with the seconds after which to try again
//!
//!   FlowSchemas, PriorityLevelConfigurations ──▶ `apply` ──▶ schemas and levels in force
//!   every ten seconds ──▶ `adjust`: idle levels lend seats to busy ones
//! ```
//! The level is that of who asks and what for, never of what a client says about itself. Requests of one level do not
//! wait for the seats of another, which leaders need to renew their Leases, and nodes to report. A body that is on its
//! way holds no seat, but a part of the memory that the process has for all bodies.
//!
//! A watch holds its seats until its initial state is sent; logs and connections have none, as upstream. Those of an
//! exempt level are counted, and wait for nothing.

mod debug;
mod estimate;
mod exempt;
mod initialization;
mod level;
mod level_metrics;
mod limited;
mod matched;
mod max_in_flight;
mod metrics;
mod schema;
mod seat;
mod watches;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use setpoint_fairness::{Adjustment, Configuration, Digest, Target, WatchCounts, adjust, matches};
use setpoint_kinds::{Identity, flowcontrol};
use setpoint_proto::ApiError;
use setpoint_proto::flowcontrol::{FlowSchema, PriorityLevelConfiguration};
use setpoint_store::cache::Cache;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::Attributes;
pub(crate) use debug::Page;
pub(crate) use estimate::Reading;
pub(crate) use initialization::Initialization;
use level::Level;
pub(crate) use matched::Matched;
use max_in_flight::MaxInFlight;
use schema::Schema;
pub(crate) use seat::Admission;
pub(crate) use watches::CountedWatch;

/// The seats for reads and for writes by default, as in kube-apiserver.
pub(crate) const READS: usize = 400;
pub(crate) const WRITES: usize = 200;
/// The longest wait for a seat: a quarter of the request timeout, as in kube-apiserver.
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// The time for which the answer of a rejected request is held back, less than its client is told to wait: one that
/// tries again at once would take the processors from those who have seats.
const HELD_BACK: Duration = Duration::from_millis(500);
/// The number of answers that are held back at a time. Others are given at once.
const HELD_BACK_MAX: usize = 4096;

/// The schemas by precedence and the levels by name, in force.
#[derive(Debug, Default)]
struct Active {
    schemas: Vec<Arc<Schema>>,
    levels: BTreeMap<String, Arc<Level>>,
}

/// The limits on the requests that are executed at a time.
#[derive(Debug)]
pub(crate) struct FlowControl {
    total: usize,
    active: RwLock<Arc<Active>>,
    watches: Arc<Mutex<WatchCounts>>,
    /// Permits to hold answers back.
    held_back: Semaphore,
    /// The limits without priority and fairness.
    max_in_flight: Option<MaxInFlight>,
}

impl Default for FlowControl {
    /// Returns priority and fairness with the seats of kube-apiserver.
    fn default() -> Self {
        Self::new(READS, WRITES)
    }
}

impl FlowControl {
    /// Returns priority and fairness with these numbers of seats for reads and writes, which the levels share.
    pub(crate) fn new(reads: usize, writes: usize) -> Self {
        let control = Self {
            total: reads.saturating_add(writes),
            active: RwLock::default(),
            watches: Arc::default(),
            held_back: Semaphore::new(HELD_BACK_MAX),
            max_in_flight: None,
        };
        // Until the stored objects are known, those that every cluster has are in force.
        control.apply(
            flowcontrol::levels().collect(),
            flowcontrol::schemas().collect(),
        );
        control
    }

    /// Returns limits on the numbers of reads and of writes alone.
    pub(crate) fn without_fairness(reads: usize, writes: usize) -> Self {
        let control = Self {
            max_in_flight: Some(MaxInFlight::new(reads, writes)),
            ..Self::new(reads, writes)
        };
        level_metrics::set_limits(0, [reads, writes]);
        control
    }

    /// Returns whether requests have priorities.
    pub(crate) fn is_fair(&self) -> bool {
        self.max_in_flight.is_none()
    }

    /// Puts the stored objects in force. Levels that remain keep their requests; those that are gone serve the requests
    /// that they have.
    pub(crate) fn apply(&self, levels: Vec<PriorityLevelConfiguration>, schemas: Vec<FlowSchema>) {
        let mandatory = flowcontrol::mandatory();
        let mut configuration = Configuration::new(self.total, (levels, schemas), mandatory);
        let mut active = self.active.write();
        let (mut levels, mut places) = (BTreeMap::new(), 0_usize);
        for (name, spec) in std::mem::take(&mut configuration.levels) {
            let level = match active.levels.get(&name) {
                Some(level) if level.is_exempt() == spec.is_exempt => {
                    level.configure(&spec);
                    level.clone()
                }
                _ => Arc::new(Level::new(&spec)),
            };
            metrics::configured(&name, spec.limits, level.limit());
            level.set_metric_limits(level.limit(), self.total);
            places = places.saturating_add(level.places());
            levels.insert(name, level);
        }
        level_metrics::set_limits(places, [self.total; 2]);
        let schemas = configuration.schemas.into_iter();
        let schemas = schemas.filter_map(|schema| {
            let level = levels.get(&schema.spec.priority_level_configuration.name)?;
            Some(Arc::new(Schema::new(schema, level)))
        });
        let schemas = schemas.collect();
        for (name, level) in &active.levels {
            if !levels.contains_key(name) && level.quiesce() {
                levels.insert(name.clone(), level.clone());
            }
        }
        *active = Arc::new(Active { schemas, levels });
    }

    /// Adjusts the limits of the levels to their demand since the last time.
    pub(crate) fn adjust(&self) {
        let active = self.active();
        let now = Instant::now().into_std();
        let levels: Vec<_> = active.levels.values().collect();
        let demands: Vec<Adjustment> = levels.iter().map(|level| level.demand(now)).collect();
        let adjusted = adjust(&demands);
        metrics::adjusted(adjusted.fair_fraction);
        for ((level, before), (limit, target)) in levels.iter().zip(&demands).zip(adjusted.levels) {
            level.set_limit(now, limit);
            level.set_metric_limits(limit, self.total);
            metrics::adjusted_level(level.name(), &before.demand, target, limit);
        }
        self.forget_idle(&active);
    }

    /// Forgets levels that are gone and have no requests any more.
    fn forget_idle(&self, seen: &Active) {
        let is_over = |level: &Arc<Level>| level.is_quiescing() && level.is_idle();
        if !seen.levels.values().any(is_over) {
            return;
        }
        let mut active = self.active.write();
        let kept = active.levels.iter().filter(|(_, level)| !is_over(level));
        let levels = kept.map(|(name, level)| (name.clone(), level.clone()));
        *active = Arc::new(Active {
            levels: levels.collect(),
            schemas: active.schemas.clone(),
        });
    }

    /// Takes a seat for a request, at once or after a wait of at most `wait`.
    ///
    /// # Errors
    /// `TooManyRequests`, with the response headers of its schema.
    pub(crate) async fn enter(
        &self,
        cache: &Cache,
        user: &Identity,
        asked: &Arc<Attributes>,
        reading: Reading,
        wait: Option<Duration>,
    ) -> (Admission, Result<(), ApiError>) {
        let wait = wait.map_or(LONGEST_WAIT, |wait| (wait / 4).min(LONGEST_WAIT));
        if let Some(limits) = &self.max_in_flight {
            let admission = Admission::unclassified();
            let taken = limits.take(user, asked);
            return (admission.clone(), taken.map(|seat| admission.begin(seat)));
        }
        let digest = digest(user, asked);
        let Some(schema) = self.classify(&digest) else {
            // A level is always there: that of `catch-all`, which is for everybody.
            return (Admission::unclassified(), Ok(()));
        };
        let work = match schema.level.is_exempt() {
            true => Default::default(),
            false => self.estimate(cache, &schema, asked, reading),
        };
        let admission = Admission::new(schema, work, wait, user, asked);
        let entered = admission.resume().await;
        if entered.is_err()
            && let Ok(_permit) = self.held_back.try_acquire()
        {
            sleep(HELD_BACK).await;
        }
        (admission, entered)
    }

    /// Returns the schema that a request belongs to: the first that matches or, if none does, the last.
    fn classify(&self, request: &Digest<'_>) -> Option<Arc<Schema>> {
        let active = self.active();
        let mut schemas = active.schemas.iter();
        let found = schemas.find(|schema| matches(request, &schema.spec));
        found.or(active.schemas.last()).cloned()
    }

    fn active(&self) -> Arc<Active> {
        self.active.read().clone()
    }
}

/// Returns what a request is judged by.
fn digest<'a>(user: &'a Identity, asked: &'a Attributes) -> Digest<'a> {
    let target = match &asked.resource {
        None => Target::Path(&asked.path),
        Some(resource) => Target::Resource {
            group: &resource.group,
            resource: &resource.resource,
            subresource: &resource.subresource,
            namespace: &resource.namespace,
        },
    };
    Digest {
        user: &user.name,
        groups: &user.groups,
        verb: &asked.verb,
        target,
    }
}

#[cfg(test)]
mod tests;
