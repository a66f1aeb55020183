//! Random histories: caches lag, the controller crashes between any two writes, Jobs finish, users interfere.

use std::collections::BTreeMap;

use proptest::prelude::*;
use setpoint_controller::Outcome;
use setpoint_cronjob_controller::{plan, status};
use setpoint_model::Revision;
use setpoint_model::time::seconds_after;
use setpoint_proto::batch::Job;

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
    /// The states that caches may show: each from the last one that has all own writes.
    caches: Vec<Revision>,
    /// The uids of the Jobs that were ever created for a scheduled time, by name.
    started: BTreeMap<String, String>,
    /// Whether the policy has been `Forbid` since all Jobs of earlier policies were finished.
    forbids: bool,
    by_hand: usize,
}

impl Simulation {
    fn new(cluster: Cluster) -> Self {
        Self {
            caches: vec![cluster.objects.revision()],
            forbids: cluster.cronjob().spec.concurrency_policy == "Forbid",
            cluster,
            started: BTreeMap::new(),
            by_hand: 0,
        }
    }

    fn changed(&mut self) {
        self.caches.push(self.cluster.objects.revision());
    }

    /// Reconciles what the caches show, until the crash.
    fn reconcile(&mut self, seen: Revision, crash: Option<usize>) {
        let world = self.cluster.world_of(self.cluster.objects.as_of(seen));
        self.cluster.objects.crash_after(crash);
        self.cluster.reconcile_world(&world);
        self.cluster.objects.crash_after(None);
        self.own_writes();
    }

    /// The next reconcile, also of a new leader, sees all that was written.
    fn own_writes(&mut self) {
        self.caches = vec![self.cluster.objects.revision()];
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Wait(seconds) => {
                let objects = &mut self.cluster.objects;
                objects.now = seconds_after(objects.now, *seconds);
            }
            Event::Reconcile(crash) => self.reconcile(self.cluster.objects.revision(), *crash),
            Event::Late(by) => {
                let newest = self.caches.len() - 1;
                self.reconcile(self.caches[newest.saturating_sub(*by)], None);
            }
            Event::Finish(job, well) => {
                let running = names(&self.cluster, is_running);
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
                self.cluster
                    .edit(|cronjob| cronjob.spec.suspend = Some(*suspend));
                self.changed();
            }
            Event::Policy(policy) => {
                let policy = POLICIES[*policy];
                self.cluster
                    .edit(|cronjob| cronjob.spec.concurrency_policy = policy.into());
                self.forbids = policy == "Forbid" && self.running() <= 1;
                // A reconcile that has not seen the change may still follow the old policy.
                self.own_writes();
            }
        }
    }

    /// Returns the number of unfinished Jobs of scheduled times.
    fn running(&self) -> usize {
        names(&self.cluster, |job| is_scheduled(job) && is_running(job)).len()
    }

    /// Checks that no scheduled time has got a second Job, also after the first was deleted.
    fn check_started(&mut self) {
        for job in self.cluster.jobs().iter().filter(|job| is_scheduled(job)) {
            let (name, uid) = (&job.metadata.name, &job.metadata.uid);
            let first = self.started.entry(name.clone());
            assert_eq!(first.or_insert_with(|| uid.clone()), uid);
        }
    }
}

fn is_running(job: &Job) -> bool {
    job.status.conditions.is_empty()
}

fn is_scheduled(job: &Job) -> bool {
    !job.metadata.name.starts_with("by-hand")
}

fn names(cluster: &Cluster, are: impl Fn(&Job) -> bool) -> Vec<String> {
    let jobs = cluster.jobs().into_iter().filter(|job| are(job));
    jobs.map(|job| job.metadata.name.clone()).collect()
}

proptest! {
    /// Checks J1, J3.
    #[test]
    fn a_time_has_at_most_one_job_and_forbid_at_most_one_that_runs(
        events in events(), policy in 0..3_usize, limits in (0..3_i32, 0..3_i32), interval in any::<bool>(),
    ) {
        let mut cluster = Cluster::new(if interval { "@every 90s" } else { "*/2 * * * *" });
        cluster.edit(|cronjob| {
            cronjob.spec.concurrency_policy = POLICIES[policy].into();
            cronjob.spec.successful_jobs_history_limit = Some(limits.0);
            cronjob.spec.failed_jobs_history_limit = Some(limits.1);
        });
        let mut simulation = Simulation::new(cluster);
        let mut last = None;
        for event in &events {
            simulation.apply(event);
            simulation.check_started();
            prop_assert!(!simulation.forbids || simulation.running() <= 1);
            let now = simulation.cluster.last_scheduled();
            prop_assert!(last <= now, "the status goes back");
            last = now;
        }
        let cluster = &mut simulation.cluster;
        cluster.settle();
        let finished = |condition: &str| {
            names(cluster, |job| job.status.conditions.iter().any(|one| one.r#type == condition)).len()
        };
        prop_assert!(finished("Complete") <= limits.0 as usize);
        prop_assert!(finished("Failed") <= limits.1 as usize);
        let mut recorded = cluster.active();
        recorded.sort();
        prop_assert_eq!(recorded, names(cluster, |job| is_scheduled(job) && is_running(job)));
    }

    #[test]
    fn the_plan_does_not_depend_on_the_order_of_the_cache(events in events(), rotation in 0..10_usize) {
        let mut simulation = Simulation::new(Cluster::new("* * * * *"));
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
