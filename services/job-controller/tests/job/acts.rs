//! Tests of the writes of the job-controller, against a gateway in this process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use setpoint_controller::{
    Client, Controller, Outcome, Receipt, Reconciler, Recorder, View, client,
};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_job_controller::{
    Action, Failures, JobPodView, JobView, Jobs, TRACKING, Tracked, World, keys_of, plan, status,
};
use setpoint_model::{Key, Target, condition, owner};
use setpoint_proto::batch::Job;
use setpoint_proto::core::{Container, Namespace, Pod, ServiceAccount};
use setpoint_proto::meta::DeleteOptions;
use setpoint_proto::{ApiError, Reason};
use tokio::sync::Notify;
use tokio::time::timeout;

const NAMESPACE: &str = "production";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// A Job in a gateway, and the reconciler that acts on it.
struct Fixture {
    gateway: Client,
    jobs: Jobs,
    now: Timestamp,
    seed: u64,
    _gateway: InProcess,
}

impl Fixture {
    async fn start(change: impl FnOnce(&mut Job)) -> Self {
        let server = in_process::start().await;
        let settings = client::Settings {
            address: server.url.clone(),
            ..Default::default()
        };
        let gateway = Client::connect(&settings, "job-controller").unwrap();
        let mut namespace = Namespace::default();
        namespace.metadata.name = NAMESPACE.into();
        gateway.create(&namespace).await.unwrap();
        let mut account = ServiceAccount::default();
        account.metadata.namespace = NAMESPACE.into();
        account.metadata.name = "default".into();
        gateway.create(&account).await.unwrap();
        let mut job = pi();
        change(&mut job);
        gateway.create(&job).await.unwrap();
        let readers = (
            gateway.informer::<JobView>(),
            gateway.informer::<JobPodView>(),
        );
        let jobs = Jobs {
            jobs: readers.0.reader(),
            pods: readers.1.reader(),
            events: Recorder::silent(),
        };
        Self {
            gateway,
            jobs,
            now: Timestamp::now(),
            seed: 7,
            _gateway: server,
        }
    }

    async fn job(&self) -> Job {
        self.gateway.get(&Key::new(NAMESPACE, "pi")).await.unwrap()
    }

    async fn pods(&self) -> Vec<Pod> {
        self.gateway.list(&Default::default()).await.unwrap().items
    }

    async fn world(&self) -> World {
        let job = JobView::of(self.job().await);
        let pods = self
            .pods()
            .await
            .into_iter()
            .map(JobPodView::of)
            .map(Arc::new);
        let pods = pods.collect();
        World {
            job: Arc::new(job),
            pods,
            strays: Vec::new(),
            now: self.now,
            seed: self.seed,
        }
    }

    /// Reconciles once, as the runtime does. Returns whether there was nothing to do.
    async fn reconcile(&mut self) -> bool {
        let world = self.world().await;
        let mut outcome = Outcome::of(plan(&world));
        for step in &outcome.plan.steps {
            self.jobs
                .act(&self.gateway, &world, &step.action)
                .await
                .unwrap();
            outcome.done += 1;
        }
        self.seed += 1_000;
        let status = status(&world, &outcome);
        let idle = outcome.plan.steps.is_empty() && status.is_none();
        if let Some(status) = status {
            self.jobs
                .update_status(&self.gateway, &world, status)
                .await
                .unwrap();
        }
        idle
    }

    async fn settle(&mut self) {
        for _ in 0..20 {
            if self.reconcile().await {
                return;
            }
        }
        panic!("does not settle: {:#?}", self.job().await);
    }

    async fn act(&self, action: Action) -> Result<Receipt, ApiError> {
        let world = self.world().await;
        self.jobs.act(&self.gateway, &world, &action).await
    }

    async fn pod(&self, name: &str) -> Result<Pod, ApiError> {
        self.gateway.get(&Key::new(NAMESPACE, name)).await
    }

    async fn tracked(&self, name: &str) -> Tracked {
        let pod = JobPodView::of(self.pod(name).await.unwrap());
        let finalizers = pod.is_tracked().then(|| pod.details().finalizers.clone());
        Tracked {
            pod: Target::of(pod.meta()),
            finalizers,
        }
    }

    async fn create(&self, name: &str) {
        let action = Action::Create {
            name: name.into(),
            index: None,
            failures: None,
        };
        self.act(action).await.unwrap();
    }

    /// Lets a Pod run on a node.
    async fn run(&self, pod: &Pod) {
        let key = Key::of(&pod.metadata);
        self.gateway
            .bind(&key, "node", &pod.metadata.uid)
            .await
            .unwrap();
        let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        self.gateway
            .patch::<Pod>(&key, "status", running)
            .await
            .unwrap();
    }

    async fn end(&self, pod: &Pod, phase: &str) {
        let ended = json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": "False"}]}});
        let key = Key::of(&pod.metadata);
        self.gateway
            .patch::<Pod>(&key, "status", ended)
            .await
            .unwrap();
    }

    /// Removes a terminating Pod, as its node does.
    async fn stop(&self, pod: &Pod) {
        self.end(pod, "Failed").await;
        let key = Key::of(&pod.metadata);
        _ = self
            .gateway
            .delete::<Pod>(&key, Default::default(), Some(0))
            .await;
    }

    async fn edit(&self, patch: serde_json::Value) {
        let key = Key::new(NAMESPACE, "pi");
        self.gateway.patch::<Job>(&key, "", patch).await.unwrap();
    }

    async fn has(&self, kind: &str) -> bool {
        condition::is_true(&self.job().await.status.conditions, kind)
    }
}

fn pi() -> Job {
    let mut job = Job::default();
    (job.metadata.name, job.metadata.namespace) = ("pi".into(), NAMESPACE.into());
    let spec = &mut job.spec.template.spec;
    spec.restart_policy = "Never".into();
    spec.containers.push(Container {
        name: "main".into(),
        image: "pi".into(),
        ..Default::default()
    });
    job
}

/// Checks J4.
#[tokio::test]
async fn the_gateway_accepts_every_status_until_the_job_is_complete() {
    let mut fixture = Fixture::start(|job| {
        (job.spec.parallelism, job.spec.completions) = (Some(2), Some(3));
        job.spec.backoff_limit = Some(5);
    })
    .await;
    fixture.settle().await;
    let pods = fixture.pods().await;
    assert_eq!(pods.len(), 2);
    for pod in &pods {
        fixture.run(pod).await;
    }
    fixture.settle().await;
    let status = fixture.job().await.status;
    assert_eq!((status.active, status.ready), (2, Some(2)));
    fixture.end(&pods[0], "Succeeded").await;
    fixture.end(&pods[1], "Failed").await;
    fixture.settle().await;
    fixture.now += SignedDuration::from_secs(60);
    fixture.settle().await;
    for pod in fixture
        .pods()
        .await
        .iter()
        .filter(|pod| pod.status.phase == "Pending")
    {
        fixture.end(pod, "Succeeded").await;
    }
    fixture.settle().await;
    let status = fixture.job().await.status;
    assert!(fixture.has("Complete").await, "{status:#?}");
    assert_eq!((status.succeeded, status.failed, status.active), (3, 1, 0));
    assert!(status.completion_time.is_some());
    let pods = fixture.pods().await;
    assert!(pods.iter().all(|pod| pod.metadata.finalizers.is_empty()));
}

#[tokio::test]
async fn the_gateway_accepts_every_status_until_the_job_has_failed() {
    let mut fixture = Fixture::start(|job| {
        (job.spec.parallelism, job.spec.completions) = (Some(2), Some(2));
        job.spec.completion_mode = Some("Indexed".into());
        job.spec.backoff_limit_per_index = Some(0);
        job.spec.max_failed_indexes = Some(0);
    })
    .await;
    fixture.settle().await;
    let pods = fixture.pods().await;
    for pod in &pods {
        fixture.run(pod).await;
    }
    fixture.end(&pods[0], "Failed").await;
    fixture.settle().await;
    let status = fixture.job().await.status;
    assert!(!fixture.has("Failed").await, "a Pod is terminating");
    assert_eq!((status.terminating, status.failed), (Some(1), 2));
    fixture.stop(&pods[1]).await;
    fixture.settle().await;
    let status = fixture.job().await.status;
    assert!(fixture.has("Failed").await, "{status:#?}");
    assert_eq!(status.failed_indexes.as_deref(), Some("0"));
}

#[tokio::test]
async fn the_gateway_accepts_every_status_of_a_suspended_and_resumed_job() {
    let mut fixture = Fixture::start(|_| {}).await;
    fixture.settle().await;
    let pods = fixture.pods().await;
    fixture.run(&pods[0]).await;
    fixture.settle().await;
    fixture.edit(json!({"spec": {"suspend": true}})).await;
    fixture.settle().await;
    let status = fixture.job().await.status;
    assert!(fixture.has("Suspended").await);
    assert_eq!(
        (status.active, status.failed, status.start_time),
        (0, 0, None)
    );
    fixture.stop(&pods[0]).await;
    fixture.edit(json!({"spec": {"suspend": false}})).await;
    fixture.now += SignedDuration::from_secs(5);
    fixture.settle().await;
    let status = fixture.job().await.status;
    assert_eq!(
        (status.active, status.start_time),
        (1, Some(fixture.now.into()))
    );
    let pods = fixture.pods().await;
    fixture.end(pods.last().unwrap(), "Succeeded").await;
    fixture.settle().await;
    assert!(fixture.has("Complete").await);
}

#[tokio::test]
async fn a_pod_has_the_finalizer_and_what_its_index_gives_it() {
    let fixture = Fixture::start(|job| {
        job.spec.completion_mode = Some("Indexed".into());
        job.spec.completions = Some(9);
        job.spec
            .template
            .metadata
            .annotations
            .insert("note".into(), "kept".into());
    })
    .await;
    let failures = Some(Failures {
        counted: 2,
        ignored: 1,
    });
    let action = Action::Create {
        name: "pi-7-x".into(),
        index: Some(7),
        failures,
    };
    fixture.act(action).await.unwrap();
    let pod = fixture.pod("pi-7-x").await.unwrap();
    let job = fixture.job().await;
    let meta = &pod.metadata;
    assert_eq!(meta.finalizers, [TRACKING]);
    assert_eq!(meta.generate_name, "pi-7-");
    assert_eq!(owner::controller_of(meta).unwrap().uid, job.metadata.uid);
    assert_eq!(
        meta.labels["batch.kubernetes.io/controller-uid"],
        job.metadata.uid
    );
    assert_eq!(meta.labels["batch.kubernetes.io/job-name"], "pi");
    assert_eq!(
        (&*meta.labels[INDEX], &*meta.annotations[INDEX]),
        ("7", "7")
    );
    assert_eq!(
        meta.annotations["batch.kubernetes.io/job-index-failure-count"],
        "2"
    );
    assert_eq!(
        meta.annotations["batch.kubernetes.io/job-index-ignored-failure-count"],
        "1"
    );
    assert_eq!(meta.annotations["note"], "kept");
    assert_eq!(pod.spec.hostname, "pi-7");
    let variable = &pod.spec.containers[0].env[0];
    let field = variable
        .value_from
        .as_ref()
        .unwrap()
        .field_ref
        .as_ref()
        .unwrap();
    assert_eq!(variable.name, "JOB_COMPLETION_INDEX");
    assert_eq!(field.field_path, format!("metadata.labels['{INDEX}']"));
}

#[tokio::test]
async fn adopt_sets_the_finalizer_and_release_removes_it() {
    let fixture = Fixture::start(|_| {}).await;
    fixture.create("pi-a").await;
    let pod = fixture.tracked("pi-a").await.pod;
    fixture.act(Action::Release(pod.clone())).await.unwrap();
    let released = fixture.pod("pi-a").await.unwrap().metadata;
    assert!(released.finalizers.is_empty() && released.owner_references.is_empty());
    for stale in [Action::Adopt(pod.clone()), Action::Release(pod)] {
        assert_eq!(
            fixture.act(stale).await.unwrap_err().reason,
            Reason::Conflict
        );
    }
    let orphan = fixture.tracked("pi-a").await.pod;
    fixture.act(Action::Adopt(orphan)).await.unwrap();
    let adopted = fixture.pod("pi-a").await.unwrap().metadata;
    assert_eq!(adopted.finalizers, [TRACKING]);
    assert_eq!(adopted.owner_references.len(), 1);
}

#[tokio::test]
async fn untrack_and_discard_require_the_observed_version() {
    let fixture = Fixture::start(|_| {}).await;
    fixture.create("pi-a").await;
    let seen = fixture.tracked("pi-a").await;
    let key = Key::new(NAMESPACE, "pi-a");
    let labelled = json!({"metadata": {"labels": {"more": "labels"}}});
    fixture
        .gateway
        .patch::<Pod>(&key, "", labelled)
        .await
        .unwrap();
    for action in [
        Action::Untrack(seen.clone()),
        Action::Discard(seen.clone()),
        Action::Delete(seen.pod),
    ] {
        assert_eq!(
            fixture.act(action).await.unwrap_err().reason,
            Reason::Conflict
        );
    }
    let newest = fixture.tracked("pi-a").await;
    fixture.act(Action::Discard(newest.clone())).await.unwrap();
    assert_eq!(
        fixture.pod("pi-a").await.unwrap_err().reason,
        Reason::NotFound
    );
    assert_eq!(
        fixture.act(Action::Untrack(newest.clone())).await,
        Ok(Receipt::none())
    );
    assert_eq!(
        fixture.act(Action::Discard(newest)).await,
        Ok(Receipt::none())
    );
}

/// Checks J4.
#[tokio::test]
async fn a_deleted_pod_stays_until_it_is_untracked() {
    let fixture = Fixture::start(|_| {}).await;
    fixture.create("pi-a").await;
    let seen = fixture.tracked("pi-a").await;
    fixture.act(Action::Delete(seen.pod)).await.unwrap();
    assert!(
        fixture
            .pod("pi-a")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_some()
    );
    let deleted = fixture.tracked("pi-a").await;
    fixture.act(Action::Untrack(deleted)).await.unwrap();
    assert_eq!(
        fixture.pod("pi-a").await.unwrap_err().reason,
        Reason::NotFound
    );
}

#[tokio::test]
async fn a_stray_is_untracked_only_if_its_job_is_gone() {
    let fixture = Fixture::start(|_| {}).await;
    fixture.create("pi-a").await;
    let pod = fixture.tracked("pi-a").await;
    let job = fixture.job().await.metadata.uid;
    let stray = |owner: &str| Action::UntrackStray {
        pod: pod.clone(),
        owner: Some(owner.into()),
    };
    assert_eq!(
        fixture.act(stray(&job)).await.unwrap_err().reason,
        Reason::Conflict
    );
    fixture.act(stray("former")).await.unwrap();
    assert!(
        fixture
            .pod("pi-a")
            .await
            .unwrap()
            .metadata
            .finalizers
            .is_empty()
    );
}

#[tokio::test]
async fn the_job_is_deleted_after_its_pods() {
    let fixture = Fixture::start(|_| {}).await;
    fixture.create("pi-a").await;
    fixture.act(Action::DeleteJob).await.unwrap();
    let job = fixture.job().await.metadata;
    assert!(job.deletion_timestamp.is_some());
    assert_eq!(job.finalizers, ["foregroundDeletion"]);
}

/// Runs the controller, and returns what is notified of every change of a Pod or Job.
fn control(fixture: &Fixture) -> Arc<Notify> {
    let (jobs, pods) = (
        fixture.gateway.informer::<JobView>(),
        fixture.gateway.informer::<JobPodView>(),
    );
    let changed = Arc::new(Notify::new());
    let (job_changed, pod_changed) = (changed.clone(), changed.clone());
    let reconciler = Jobs {
        jobs: jobs.reader(),
        pods: pods.reader(),
        events: Recorder::silent(),
    };
    let all = jobs.reader();
    let jobs = jobs.on_event(move |_| job_changed.notify_one());
    let pods = pods.on_event(move |_| pod_changed.notify_one());
    let controller = Controller::new("job-controller", reconciler, fixture.gateway.clone());
    let controller = controller
        .for_(jobs)
        .watches(pods, move |pod| keys_of(&all, pod));
    tokio::spawn(
        controller
            .unelected()
            .run("job-controller-0", Default::default()),
    );
    changed
}

async fn until(changed: &Notify, holds: impl AsyncFn() -> bool) {
    let wait = async {
        while !holds().await {
            changed.notified().await;
        }
    };
    timeout(Duration::from_secs(60), wait)
        .await
        .expect("it holds in time");
}

#[tokio::test]
async fn the_controller_runs_a_job_and_releases_the_pods_of_a_deleted_one() {
    let fixture = Fixture::start(|job| job.spec.completions = Some(2)).await;
    let changed = control(&fixture);
    until(&changed, async || fixture.pods().await.len() == 1).await;
    let first = fixture.pods().await.remove(0);
    fixture.end(&first, "Succeeded").await;
    until(&changed, async || fixture.pods().await.len() == 2).await;
    until(&changed, async || fixture.job().await.status.succeeded == 1).await;
    let options = DeleteOptions {
        propagation_policy: Some("Background".into()),
        ..Default::default()
    };
    let key = Key::new(NAMESPACE, "pi");
    fixture
        .gateway
        .delete_with_options::<Job>(&key, options)
        .await
        .unwrap();
    until(&changed, async || {
        let pods = fixture.pods().await;
        pods.iter().all(|pod| pod.metadata.finalizers.is_empty())
    })
    .await;
}

#[tokio::test]
async fn an_orphan_that_no_job_adopts_is_untracked() {
    let fixture = Fixture::start(|job| job.spec.suspend = Some(true)).await;
    let mut orphan = Pod::default();
    (orphan.metadata.name, orphan.metadata.namespace) = ("orphan".into(), NAMESPACE.into());
    orphan.metadata.finalizers = vec![TRACKING.into()];
    orphan.spec = pi().spec.template.spec;
    fixture.gateway.create(&orphan).await.unwrap();
    let changed = control(&fixture);
    until(&changed, async || {
        let orphan = fixture.pod("orphan").await.unwrap();
        orphan.metadata.finalizers.is_empty()
    })
    .await;
}
