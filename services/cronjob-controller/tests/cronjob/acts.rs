//! Tests of the writes of the cronjob-controller, against a gateway in this process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use setpoint_controller::{Client, Inputs, Outcome, Receipt, Reconciler, Recorder, View, client};
use setpoint_cronjob_controller::{
    Action, CronJobView, CronJobs, JobView, Note, Schedules, World, plan, status,
};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::{Key, Target, owner};
use setpoint_proto::batch::{CronJob, Job};
use setpoint_proto::core::{Container, Event, Namespace};
use setpoint_proto::{ApiError, Reason};

const NAMESPACE: &str = "production";
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// A CronJob in a gateway, and the reconciler that acts on it.
struct Fixture {
    gateway: Client,
    cronjobs: CronJobs,
    cronjob: CronJob,
    _gateway: InProcess,
}

impl Fixture {
    async fn start() -> Self {
        let server = in_process::start().await;
        let settings = client::Settings {
            address: server.url.clone(),
            ..Default::default()
        };
        let gateway = Client::connect(&settings, "cronjob-controller").unwrap();
        let mut namespace = Namespace::default();
        namespace.metadata.name = NAMESPACE.into();
        gateway.create(&namespace).await.unwrap();
        let cronjob = gateway.create(&report()).await.unwrap().object().unwrap();
        let cronjobs = CronJobs {
            cronjobs: gateway.informer::<CronJobView>().reader(),
            jobs: gateway.informer::<JobView>().reader(),
            events: Recorder::new(gateway.clone(), "cronjob-controller", "0"),
            local: TimeZone::UTC,
            schedules: Schedules::default(),
        };
        Self {
            gateway,
            cronjobs,
            cronjob,
            _gateway: server,
        }
    }

    fn world(&self) -> World {
        World {
            cronjob: Arc::new(CronJobView::of(self.cronjob.clone())),
            jobs: Vec::new(),
            changed: None,
            local: TimeZone::UTC,
            now: self
                .cronjob
                .metadata
                .creation_timestamp
                .timestamp()
                .unwrap(),
        }
    }

    async fn act(&self, action: &Action) -> Result<Receipt, ApiError> {
        let world = self.world();
        let result = self.cronjobs.act(&self.gateway, &world, action).await;
        self.cronjobs.record(&world, action, &result);
        result
    }

    async fn job(&self, name: &str) -> Result<Job, ApiError> {
        self.gateway.get(&Key::new(NAMESPACE, name)).await
    }

    async fn target(&self, name: &str) -> Target {
        Target::of(&JobView::of(self.job(name).await.unwrap()).meta)
    }

    /// Returns type, reason, message and count of the Events, sorted.
    async fn events(&self) -> Vec<(String, String, String, i32)> {
        self.cronjobs.events.finish().await;
        let events = self.gateway.list::<Event>(&Default::default()).await;
        let events = events.unwrap().items.into_iter();
        let mut events: Vec<_> = events
            .map(|event| {
                let about = event.involved_object;
                assert_eq!((&*about.kind, &*about.name), ("CronJob", "report"));
                assert_eq!(event.source.component, "cronjob-controller");
                (event.r#type, event.reason, event.message, event.count)
            })
            .collect();
        events.sort();
        events
    }
}

fn report() -> CronJob {
    let mut cronjob = CronJob::default();
    (cronjob.metadata.name, cronjob.metadata.namespace) = ("report".into(), NAMESPACE.into());
    cronjob.spec.schedule = "*/10 * * * *".into();
    cronjob.spec.time_zone = Some("Asia/Kolkata".into());
    let template = &mut cronjob.spec.job_template;
    let (labels, annotations) = (
        &mut template.metadata.labels,
        &mut template.metadata.annotations,
    );
    labels.insert("app".into(), "report".into());
    annotations.insert("note".into(), "kept".into());
    template.spec.backoff_limit = Some(2);
    let pod = &mut template.spec.template.spec;
    pod.restart_policy = "Never".into();
    pod.containers.push(Container {
        name: "main".into(),
        image: "report".into(),
        ..Default::default()
    });
    cronjob
}

fn create() -> Action {
    Action::Create {
        name: "report-29459580".into(),
        time: "2026-01-05T01:00:00Z".parse().unwrap(),
    }
}

#[tokio::test]
async fn create_makes_a_job_from_the_template_with_its_scheduled_time() {
    let fixture = Fixture::start().await;
    fixture.act(&create()).await.unwrap();
    let job = fixture.job("report-29459580").await.unwrap();
    let owners = [owner::reference_to(&fixture.cronjob)];
    assert_eq!(job.metadata.owner_references, owners);
    assert_eq!(job.metadata.labels["app"], "report");
    assert_eq!(job.metadata.annotations["note"], "kept");
    let scheduled = &job.metadata.annotations[SCHEDULED];
    assert_eq!(scheduled, "2026-01-05T06:30:00+05:30");
    assert_eq!(job.spec.backoff_limit, Some(2));
    let view = JobView::of(job);
    assert_eq!(
        view.scheduled,
        Some("2026-01-05T01:00:00Z".parse().unwrap())
    );
}

#[tokio::test]
async fn a_scheduled_time_is_in_utc_without_a_zone() {
    let mut fixture = Fixture::start().await;
    fixture.cronjob.spec.time_zone = None;
    fixture.act(&create()).await.unwrap();
    let job = fixture.job("report-29459580").await.unwrap();
    assert_eq!(job.metadata.annotations[SCHEDULED], "2026-01-05T01:00:00Z");
}

/// Checks J1: as another controller, or this one before it was restarted, has created it.
#[tokio::test]
async fn a_repeated_create_returns_the_job_unless_it_has_another_owner() {
    let fixture = Fixture::start().await;
    let create = create();
    let (first, second) = tokio::join!(fixture.act(&create), fixture.act(&create));
    assert_eq!(first.unwrap(), second.unwrap());
    let patch = serde_json::json!({"metadata": {"ownerReferences": []}});
    let key = Key::new(NAMESPACE, "report-29459580");
    fixture.gateway.patch::<Job>(&key, "", patch).await.unwrap();
    let refused = fixture.act(&create).await.unwrap_err();
    assert_eq!(refused.reason, Reason::AlreadyExists);
    assert!(CronJobs::retry_after(&refused).is_some());
    let jobs = fixture.gateway.list::<Job>(&Default::default()).await;
    assert_eq!(jobs.unwrap().items.len(), 1);
}

#[tokio::test]
async fn delete_requires_the_observed_version_and_leaves_no_finalizer() {
    let fixture = Fixture::start().await;
    fixture.act(&create()).await.unwrap();
    let old = fixture.target("report-29459580").await;
    let patch = serde_json::json!({"metadata": {"labels": {"more": "labels"}}});
    fixture
        .gateway
        .patch::<Job>(&old.key, "", patch)
        .await
        .unwrap();
    let refused = fixture.act(&Action::Delete(old.clone())).await;
    assert_eq!(refused.unwrap_err().reason, Reason::Conflict);
    let newest = Action::Delete(fixture.target("report-29459580").await);
    fixture.act(&newest).await.unwrap();
    let gone = fixture.job("report-29459580").await.unwrap_err();
    assert_eq!(gone.reason, Reason::NotFound);
    assert_eq!(fixture.act(&newest).await, Ok(Receipt::none()));
}

#[tokio::test]
async fn events_have_the_words_of_upstream() {
    let fixture = Fixture::start().await;
    let mut world = fixture.world();
    let mut by_hand = Job::default();
    by_hand.metadata.name = "by-hand".into();
    world.jobs.push(Arc::new(JobView::of(by_hand)));
    let steps = plan(&world).steps;
    let [tell] = &*steps else { panic!("{steps:?}") };
    assert!(matches!(
        &tell.action,
        Action::Tell(Note { warns: true, .. })
    ));
    fixture.act(&tell.action).await.unwrap();
    fixture.act(&create()).await.unwrap();
    let delete = Action::Delete(fixture.target("report-29459580").await);
    fixture.act(&delete).await.unwrap();
    let mut invalid = Fixture::start().await;
    invalid
        .cronjob
        .spec
        .job_template
        .spec
        .template
        .spec
        .restart_policy = "Always".into();
    invalid.act(&create()).await.unwrap_err();
    assert_eq!(invalid.events().await[0].1, "FailedCreate");

    let expected = [
        ("Normal", "SuccessfulCreate", "Created job report-29459580"),
        ("Normal", "SuccessfulDelete", "Deleted job report-29459580"),
        (
            "Warning",
            "UnexpectedJob",
            "Saw a job that the controller did not create or forgot: by-hand",
        ),
    ];
    let expected = expected
        .map(|(kind, reason, message)| (kind.to_owned(), reason.to_owned(), message.to_owned(), 1));
    assert_eq!(fixture.events().await, expected);
}

#[tokio::test]
async fn update_status_requires_the_observed_version() {
    let fixture = Fixture::start().await;
    let world = fixture.world();
    let mut planned = Outcome::default();
    planned.plan.step(create(), "a scheduled time has come");
    let reported = status(&world, &planned).unwrap();
    let write = |status| {
        fixture
            .cronjobs
            .update_status(&fixture.gateway, &world, status)
    };
    write(reported.clone()).await.unwrap();
    let key = Key::new(NAMESPACE, "report");
    let cronjob: CronJob = fixture.gateway.get(&key).await.unwrap();
    assert_eq!(cronjob.status, reported);
    let last = cronjob.status.last_schedule_time.unwrap().timestamp();
    assert_eq!(
        last,
        Some("2026-01-05T01:00:00Z".parse::<Timestamp>().unwrap())
    );
    let stale = write(Default::default()).await;
    assert_eq!(stale.unwrap_err().reason, Reason::Conflict);
}

#[tokio::test]
async fn a_change_of_the_schedule_is_known_to_the_next_reconciles() {
    let mut fixture = Fixture::start().await;
    let informer = fixture.gateway.informer::<CronJobView>();
    let (reader, cronjobs) = (informer.reader(), &mut fixture.cronjobs);
    cronjobs.cronjobs = reader.clone();
    tokio::spawn(informer.run(Default::default()));
    reader.synced().await;
    let key = Key::new(NAMESPACE, "report");
    let reconcile = async |second| {
        let now = Timestamp::from_second(second).unwrap();
        fixture.cronjobs.fetch(&fixture.gateway, &key, now).await;
        let inputs = Inputs {
            now,
            instant: Instant::now(),
            seed: 0,
        };
        fixture.cronjobs.observe(&key, inputs).unwrap().changed
    };
    assert_eq!(reconcile(1).await, None);
    let patch = serde_json::json!({"spec": {"schedule": "30 * * * *"}});
    let patched = fixture.gateway.patch::<CronJob>(&key, "", patch).await;
    reader.reach(patched.unwrap().revision).await;
    let changed = Some(Timestamp::from_second(2).unwrap());
    assert_eq!(reconcile(2).await, changed);
    assert_eq!(reconcile(3).await, changed);
    fixture.cronjobs.begin();
    assert_eq!(reconcile(4).await, None, "a new leader does not know it");
}
