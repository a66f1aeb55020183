//! Random histories: caches lag, the controller crashes between any two writes, Jobs finish, users interfere.

use std::collections::BTreeSet;

use proptest::prelude::*;
use setpoint_controller::Outcome;
use setpoint_cronjob_controller::{Action, plan, status};
use setpoint_model::time::seconds_after;

use crate::decisions::cluster::Cluster;

const POLICIES: [&str; 3] = ["Allow", "Forbid", "Replace"];

/// One event of a history.
#[derive(Clone, Debug)]
enum Event {
    /// The clock advances by seconds.
    Wait(i64),
    /// A reconcile on the newest caches, which crashes after this number of writes.
    Reconcile(Option<usize>),
    /// A reconcile on caches as they were when this number of reconciles less had been made; not older than own writes.
    Late(usize),
    /// A Job finishes, well or not.
    Finish(usize, bool),
    /// A user creates a Job from the CronJob.
    Instantiate,
    /// A user suspends or resumes.
    Suspend(bool),
    /// A user changes the policy.
    Policy(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (1..200_i64).prop_map(Event::Wait),
        4 => Just(Event::Reconcile(None)),
        2 => (0..3_usize).prop_map(|writes| Event::Reconcile(Some(writes))),
        2 => (1..4_usize).prop_map(Event::Late),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(job, well)| Event::Finish(job, well)),
        1 => Just(Event::Instantiate),
        1 => any::<bool>().prop_map(Event::Suspend),
        1 => (0..3_usize).prop_map(Event::Policy),
    ];
    prop::collection::vec(event, 1..80)
}

struct Simulation {
    cluster: Cluster,
    /// The caches after each change, from the last that has all own writes.
    caches: Vec<Cluster>,
    /// The scheduled times for which a Job was created.
    started: Vec<String>,
    /// Whether the policy has been `Forbid` since all Jobs of earlier policies were finished.
    forbids: bool,
    by_hand: usize,
}

impl Simulation {
    fn changed(&mut self) {
        self.caches.push(self.cluster.clone());
    }

    /// Reconciles on a snapshot of the caches, until the crash.
    fn reconcile(&mut self, snapshot: &Cluster, crash: Option<usize>) {
        let mut seen = snapshot.clone();
        seen.now = self.cluster.now;
        let world = seen.world();
        let mut outcome = Outcome::of(plan(&world));
        let mut writes = 0;
        for step in &outcome.plan.steps {
            if crash.is_some_and(|crash| writes >= crash) {
                return self.own_writes();
            }
            let is_new = step
                .action
                .job()
                .is_some_and(|job| !self.cluster.jobs.contains_key(job));
            match self.cluster.apply(&step.action) {
                Ok(()) => outcome.done += 1,
                Err(error) => {
                    outcome.failed.get_or_insert(error);
                    break;
                }
            }
            writes += usize::from(step.action.job().is_some());
            if let Action::Create { name, .. } = &step.action
                && is_new
            {
                self.started.push(name.clone());
            }
        }
        let crashed = crash.is_some_and(|crash| writes >= crash);
        let unchanged = seen.cronjob == self.cluster.cronjob;
        if let Some(status) = status(&world, &outcome).filter(|_| !crashed && unchanged) {
            self.cluster.cronjob.status = status;
        }
        self.own_writes();
    }

    /// The next reconcile, also of a new leader, sees all that was written.
    fn own_writes(&mut self) {
        self.caches = vec![self.cluster.clone()];
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Wait(seconds) => self.cluster.now = seconds_after(self.cluster.now, *seconds),
            Event::Reconcile(crash) => self.reconcile(&self.cluster.clone(), *crash),
            Event::Late(by) => {
                let newest = self.caches.len() - 1;
                let snapshot = self.caches[newest.saturating_sub(*by)].clone();
                self.reconcile(&snapshot, None);
            }
            Event::Finish(job, well) => {
                let running = self.cluster.jobs.iter();
                let running: Vec<_> = running
                    .filter(|(_, job)| job.status.conditions.is_empty())
                    .map(|(name, _)| name.clone())
                    .collect();
                if let Some(name) = running.get(job % running.len().max(1)) {
                    let condition = ["Failed", "Complete"][usize::from(*well)];
                    self.cluster.finish(name, condition);
                }
                self.changed();
            }
            Event::Instantiate => {
                self.by_hand += 1;
                let name = format!("by-hand-{}", self.by_hand);
                self.cluster.add(&name);
                self.changed();
            }
            Event::Suspend(suspend) => {
                self.cluster.cronjob.spec.suspend = Some(*suspend);
                self.changed();
            }
            Event::Policy(policy) => {
                self.cluster.cronjob.spec.concurrency_policy = POLICIES[*policy].into();
                self.forbids = POLICIES[*policy] == "Forbid" && self.running() <= 1;
                // A reconcile that has not seen the change may still follow the old policy.
                self.own_writes();
            }
        }
    }

    /// Returns the number of unfinished Jobs of scheduled times.
    fn running(&self) -> usize {
        let jobs = self.cluster.jobs.values();
        let scheduled = jobs.filter(|job| !job.metadata.name.starts_with("by-hand"));
        scheduled
            .filter(|job| job.status.conditions.is_empty())
            .count()
    }
}

proptest! {
    /// Checks J1, J3.
    #[test]
    fn a_time_has_at_most_one_job_and_forbid_at_most_one_that_runs(
        events in events(), policy in 0..3_usize, limits in (0..3_i32, 0..3_i32), interval in any::<bool>(),
    ) {
        let mut cluster = Cluster::new(if interval { "@every 90s" } else { "*/2 * * * *" });
        cluster.cronjob.spec.concurrency_policy = POLICIES[policy].into();
        cluster.cronjob.spec.successful_jobs_history_limit = Some(limits.0);
        cluster.cronjob.spec.failed_jobs_history_limit = Some(limits.1);
        let mut simulation = Simulation {
            caches: vec![cluster.clone()],
            cluster,
            started: Vec::new(),
            forbids: POLICIES[policy] == "Forbid",
            by_hand: 0,
        };
        let mut last = None;
        for event in &events {
            simulation.apply(event);
            let distinct: BTreeSet<_> = simulation.started.iter().collect();
            prop_assert_eq!(distinct.len(), simulation.started.len(), "{:?}", simulation.started);
            prop_assert!(!simulation.forbids || simulation.running() <= 1);
            let now = simulation.cluster.last_scheduled();
            prop_assert!(last <= now, "the status goes back");
            last = now;
        }
        let cluster = &mut simulation.cluster;
        cluster.settle();
        let finished = |condition: &str| {
            let jobs = cluster.jobs.values();
            jobs.filter(|job| job.status.conditions.iter().any(|one| one.r#type == condition)).count()
        };
        prop_assert!(finished("Complete") <= limits.0 as usize);
        prop_assert!(finished("Failed") <= limits.1 as usize);
        let recorded: BTreeSet<_> = cluster.active().into_iter().map(str::to_owned).collect();
        let running = cluster.jobs.iter().filter(|(name, job)| {
            job.status.conditions.is_empty() && !name.starts_with("by-hand")
        });
        let running: BTreeSet<_> = running.map(|(name, _)| name.clone()).collect();
        prop_assert_eq!(recorded, running);
    }

    #[test]
    fn the_plan_does_not_depend_on_the_order_of_the_cache(events in events(), rotation in 0..10_usize) {
        let cluster = Cluster::new("* * * * *");
        let mut simulation = Simulation {
            caches: vec![cluster.clone()],
            cluster,
            started: Vec::new(),
            forbids: false,
            by_hand: 0,
        };
        events.iter().for_each(|event| simulation.apply(event));
        let world = simulation.cluster.world();
        let mut rotated = world.clone();
        let jobs = rotated.jobs.len().max(1);
        rotated.jobs.rotate_left(rotation % jobs);
        let sorted = |world| {
            let mut steps: Vec<_> = plan(world).steps.into_iter().map(|step| format!("{step:?}")).collect();
            steps.sort();
            steps
        };
        prop_assert_eq!(sorted(&world), sorted(&rotated));
        prop_assert_eq!(status(&world, &Outcome::default()), status(&rotated, &Outcome::default()));
    }
}
