//! The controller: its informers, and its implementation of [`Reconciler`].

use std::env;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use setpoint_controller::runtime::Settings;
use setpoint_controller::{
    Client, Hosted, Inputs, ObjectRef, Outcome, Plan, Reader, Receipt, Reconciler, Recorder,
    Replica,
};
use setpoint_model::{Key, Meta, cron};
use setpoint_proto::batch::{CronJob, CronJobStatus, Job};
use setpoint_proto::{ApiError, Reason, Resource as _};

use crate::{Action, CronJobView, JobView, Schedules, World, act, plan, status};

/// The delay after another object was found under the name of a Job: the time after which the next Job may be due.
const NAME_TAKEN: Duration = Duration::from_secs(60);

/// The CronJob reconciler.
pub struct CronJobs {
    /// The cache of CronJobs.
    pub cronjobs: Reader<CronJobView>,
    /// The cache of Jobs.
    pub jobs: Reader<JobView>,
    /// The recorder of Events.
    pub events: Recorder,
    /// The time zone of schedules that name none.
    pub local: TimeZone,
    /// The times of changes of schedules.
    pub schedules: Schedules,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "cronjob-controller",
    resource: CronJob::RESOURCE,
    run: |replica, settings, ()| Box::pin(run(replica, settings)),
};

async fn run(replica: Replica, settings: Settings) -> anyhow::Result<()> {
    let reconciler = CronJobs {
        cronjobs: replica.reader(),
        jobs: replica.reader(),
        events: replica.events.clone(),
        local: local(),
        schedules: Schedules::default(),
    };
    let controller = replica
        .controller(reconciler)
        .for_(replica.informer::<CronJobView>())
        .watches(replica.informer::<JobView>(), owner);
    replica.run(controller, settings).await
}

/// Returns the CronJob that controls a Job.
fn owner(job: &JobView) -> Option<Key> {
    let owner = job.meta.owner.as_ref()?;
    let is_cronjob = owner.kind == CronJob::KIND;
    is_cronjob.then(|| Key::new(&job.meta.key.namespace, &owner.name))
}

/// Returns the time zone of the process: that of the variable `TZ`, which needs no files, or else the system's.
fn local() -> TimeZone {
    let named = env::var("TZ").ok();
    let named = named.and_then(|name| cron::zone(name.trim_start_matches(':'), &TimeZone::UTC));
    named.unwrap_or_else(TimeZone::system)
}

impl Reconciler for CronJobs {
    type Object = CronJob;
    type World = World;
    type Action = Action;

    fn begin(&self) {
        self.schedules.clear();
    }

    async fn fetch(&self, _: &Client, key: &Key, now: Timestamp) {
        self.schedules
            .keep(key, self.cronjobs.get(key).as_deref(), now);
    }

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        World::observe(self, key, inputs)
    }

    fn meta(world: &World) -> &Meta {
        &world.cronjob.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(world: &World, action: &Action) -> Option<ObjectRef> {
        let job = Key::new(&world.cronjob.meta.key.namespace, action.job()?);
        Some(job.in_resource(Job::RESOURCE))
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, world, action).await
    }

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        act::record(&self.events, &world.cronjob, action, result);
    }

    fn status(world: &World, outcome: &Outcome<Action>) -> Option<CronJobStatus> {
        status(world, outcome)
    }

    fn retry_after(error: &ApiError) -> Option<Duration> {
        (error.reason == Reason::AlreadyExists).then_some(NAME_TAKEN)
    }
}
