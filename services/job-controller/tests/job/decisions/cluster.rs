//! Simulates the gateway for one Job and its Pods, and the caches of the controller.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Outcome, Plan, View};
use setpoint_job_controller::{
    Action, JobPodView, JobView, TRACKING, Tracked, World, plan, status,
};
use setpoint_model::{Target, condition, owner};
use setpoint_proto::batch::{Job, JobStatus, UncountedTerminatedPods};
use setpoint_proto::core::{self, ContainerStateTerminated, ContainerStatus, PodCondition};
use setpoint_proto::meta::LabelSelector;
use setpoint_proto::{ApiError, Reason};

pub const INDEX: &str = "batch.kubernetes.io/job-completion-index";
pub const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
pub const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// Why a reconcile did not go on.
#[derive(Debug)]
pub enum Stop {
    Crash,
    Refused(ApiError),
}

#[derive(Clone, Debug)]
pub struct Cluster {
    pub job: Job,
    pub pods: BTreeMap<String, core::Pod>,
    pub seed: u64,
    pub now: i64,
    /// What the caches hold.
    cached: (Job, BTreeMap<String, core::Pod>),
    /// Whether the caches must reach own writes before the next reconcile.
    wrote: (bool, bool),
    revision: u64,
    /// The uids that the status has ever had as uncounted.
    pub counted: (BTreeSet<String>, BTreeSet<String>),
    /// The Pods that ended while they were tracked, and their index.
    pub ended: BTreeMap<String, (bool, Option<usize>)>,
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

impl Cluster {
    pub fn new(change: impl FnOnce(&mut Job)) -> Self {
        let mut job = Job::default();
        job.metadata.name = "pi".into();
        job.metadata.namespace = "production".into();
        job.metadata.uid = "job-uid".into();
        job.metadata.resource_version = "1".into();
        let labels: BTreeMap<_, _> = [("job".to_owned(), "pi".to_owned())].into();
        job.spec.template.metadata.labels = labels.clone();
        job.spec.selector = Some(LabelSelector {
            match_labels: labels,
            ..Default::default()
        });
        job.spec.template.spec.restart_policy = "Never".into();
        (job.spec.parallelism, job.spec.completions) = (Some(1), Some(1));
        job.spec.backoff_limit = Some(6);
        change(&mut job);
        Self {
            cached: (job.clone(), BTreeMap::new()),
            job,
            pods: BTreeMap::new(),
            seed: 7,
            now: 1_000,
            wrote: (false, false),
            revision: 1,
            counted: Default::default(),
            ended: BTreeMap::new(),
        }
    }

    /// Returns an indexed Job.
    pub fn indexed(completions: i32, change: impl FnOnce(&mut Job)) -> Self {
        Self::new(|job| {
            job.spec.completion_mode = Some("Indexed".into());
            (job.spec.parallelism, job.spec.completions) = (Some(completions), Some(completions));
            change(job);
        })
    }

    /// Changes the spec of the Job.
    pub fn edit(&mut self, change: impl FnOnce(&mut Job)) {
        self.revision += 1;
        change(&mut self.job);
        self.job.metadata.resource_version = self.revision.to_string();
    }

    /// Adds a Pod of the Job, as the controller creates it.
    pub fn add(&mut self, name: &str, index: Option<usize>) -> &mut core::Pod {
        let mut pod = core::Pod::default();
        pod.metadata.name = name.into();
        pod.metadata.namespace = "production".into();
        pod.metadata.uid = format!("{name}-{}", self.revision);
        pod.metadata.labels = self.job.spec.template.metadata.labels.clone();
        pod.metadata.owner_references = vec![owner::reference_to(&self.job)];
        pod.metadata.finalizers = vec![TRACKING.into()];
        let index = index.map(|index| (INDEX.to_owned(), index.to_string()));
        pod.metadata.annotations.extend(index);
        pod.metadata.creation_timestamp = at(self.now).into();
        pod.status.phase = "Pending".into();
        self.pods.insert(name.into(), pod);
        self.change(name)
    }

    /// Returns a Pod to be changed, with a new resourceVersion.
    pub fn change(&mut self, name: &str) -> &mut core::Pod {
        self.revision += 1;
        let pod = self.pods.get_mut(name).unwrap();
        pod.metadata.resource_version = self.revision.to_string();
        pod
    }

    pub fn run(&mut self, name: &str) {
        let now = at(self.now).into();
        let pod = self.change(name);
        pod.spec.node_name = "node".into();
        pod.status.phase = "Running".into();
        let ready = PodCondition {
            r#type: "Ready".into(),
            status: "True".into(),
            last_transition_time: now,
            ..Default::default()
        };
        pod.status.conditions = vec![ready];
    }

    /// Ends a Pod with an exit code.
    pub fn end(&mut self, name: &str, code: i32) {
        let now = at(self.now).into();
        let pod = self.change(name);
        pod.status.phase = if code == 0 { "Succeeded" } else { "Failed" }.into();
        pod.status
            .conditions
            .retain(|condition| condition.r#type != "Ready");
        let mut container = ContainerStatus {
            name: "main".into(),
            ..Default::default()
        };
        container.state.terminated = Some(ContainerStateTerminated {
            exit_code: code,
            finished_at: now,
            ..Default::default()
        });
        pod.status.container_statuses = vec![container];
        if pod
            .metadata
            .finalizers
            .iter()
            .any(|finalizer| finalizer == TRACKING)
        {
            let index = pod
                .metadata
                .annotations
                .get(INDEX)
                .map(|index| index.parse().unwrap());
            let uid = pod.metadata.uid.clone();
            self.ended.insert(uid, (code == 0, index));
        }
        self.collect(name);
    }

    /// Deletes a Pod as a user does.
    pub fn delete(&mut self, name: &str) {
        let now = at(self.now).into();
        self.change(name).metadata.deletion_timestamp = Some(now);
        self.collect(name);
    }

    /// Removes a Pod that nothing keeps.
    fn collect(&mut self, name: &str) {
        let pod = &self.pods[name];
        let stopped = pod.spec.node_name.is_empty() || setpoint_model::pod::is_terminal(pod);
        let deleted = pod.metadata.deletion_timestamp.is_some();
        if deleted && stopped && pod.metadata.finalizers.is_empty() {
            self.pods.remove(name);
        }
    }

    pub fn sync_job(&mut self) {
        self.cached.0 = self.job.clone();
        self.wrote.0 = false;
    }

    pub fn sync_pods(&mut self) {
        self.cached.1 = self.pods.clone();
        self.wrote.1 = false;
    }

    /// Returns the newest state.
    pub fn world(&self) -> World {
        Self::view(&self.job, &self.pods, self.now, self.seed)
    }

    fn view(job: &Job, pods: &BTreeMap<String, core::Pod>, now: i64, seed: u64) -> World {
        let job = JobView::of(job.clone());
        let pods = pods
            .values()
            .cloned()
            .map(JobPodView::of)
            .map(Arc::new)
            .collect();
        let (pods, strays) = match job.is_managed() {
            true => (pods, Vec::new()),
            false => (Vec::new(), pods),
        };
        let strays = strays
            .into_iter()
            .filter(|pod: &Arc<JobPodView>| pod.is_tracked())
            .collect();
        World {
            job: Arc::new(job),
            pods,
            strays,
            now: at(now),
            seed,
        }
    }

    /// Returns the plan for the newest state.
    pub fn plan(&self) -> Plan<Action> {
        plan(&self.world())
    }

    /// Reconciles with caches that have reached the newest state. Returns the plan.
    pub fn reconcile(&mut self) -> Plan<Action> {
        self.sync_job();
        self.sync_pods();
        let planned = self.plan();
        self.reconcile_cached(usize::MAX);
        planned
    }

    /// Reconciles on the caches, with this many writes before the controller crashes. Another one has newer caches.
    pub fn reconcile_cached(&mut self, mut writes: usize) {
        if self.wrote.0 {
            self.sync_job();
        }
        if self.wrote.1 {
            self.sync_pods();
        }
        let (job, pods) = &self.cached;
        let world = Self::view(job, pods, self.now, self.seed);
        if self.execute(&world, &mut writes).is_err() {
            self.sync_job();
            self.sync_pods();
            self.seed += 1_000;
        }
    }

    fn execute(&mut self, world: &World, writes: &mut usize) -> Result<(), Stop> {
        let mut outcome = Outcome::of(plan(world));
        for step in outcome.plan.steps.clone() {
            match self.apply(&step.action, writes) {
                Ok(()) => outcome.done += 1,
                Err(Stop::Refused(error)) => {
                    outcome.failed = Some(error);
                    break;
                }
                Err(crash) => return Err(crash),
            }
        }
        if outcome.failed.is_none() {
            self.seed += 1_000;
        }
        if let Some(status) = status(world, &outcome) {
            self.write_status(world, status, writes)?;
        }
        Ok(())
    }

    /// Writes a status, and checks that no Pod is counted twice.
    fn write_status(
        &mut self,
        world: &World,
        status: JobStatus,
        writes: &mut usize,
    ) -> Result<(), Stop> {
        write(writes)?;
        self.wrote.0 = true;
        if world.job.meta.revision.to_string() != self.job.metadata.resource_version {
            return Ok(());
        }
        let old = self.job.status.clone();
        let uids =
            |status: &JobStatus| status.uncounted_terminated_pods.clone().unwrap_or_default();
        let UncountedTerminatedPods { succeeded, failed } = uids(&status);
        let before = uids(&old);
        for (now, before, ever) in [
            (&succeeded, &before.succeeded, &mut self.counted.0),
            (&failed, &before.failed, &mut self.counted.1),
        ] {
            for uid in now.iter().filter(|uid| !before.contains(uid)) {
                assert!(
                    ever.insert(uid.clone()),
                    "{uid} is counted twice: {status:#?}"
                );
            }
        }
        assert!(self.counted.0.is_disjoint(&self.counted.1));
        let total = |count: i32, uids: &[String]| count as usize + uids.len();
        if job_is_indexed(&self.job) {
            assert!(succeeded.is_empty());
        } else {
            assert_eq!(total(status.succeeded, &succeeded), self.counted.0.len());
        }
        assert_eq!(total(status.failed, &failed), self.counted.1.len());
        for last in ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"] {
            let was = condition::is_true(&old.conditions, last);
            assert!(
                !was || condition::is_true(&status.conditions, last),
                "{last} is taken back"
            );
        }
        self.edit(|job| job.status = status);
        Ok(())
    }

    /// Applies an action as the gateway does.
    fn apply(&mut self, action: &Action, writes: &mut usize) -> Result<(), Stop> {
        self.wrote.1 = true;
        match action {
            Action::Create {
                name,
                index,
                failures,
            } => {
                write(writes)?;
                match self.pods.get(name) {
                    Some(pod) if pod.metadata.owner_references[0].uid == "job-uid" => {}
                    Some(_) => return refuse(Reason::AlreadyExists),
                    None => {
                        let pod = self.add(name, *index);
                        let numbers = failures
                            .iter()
                            .flat_map(|it| [(FAILURES, it.counted), (IGNORED, it.ignored)]);
                        let numbers =
                            numbers.map(|(name, number)| (name.to_owned(), number.to_string()));
                        pod.metadata.annotations.extend(numbers);
                    }
                }
            }
            Action::Adopt(pod) => {
                write(writes)?;
                let reference = owner::reference_to(&self.job);
                let meta = &mut self.unchanged(pod)?.metadata;
                meta.owner_references.push(reference);
                meta.finalizers.push(TRACKING.into());
            }
            Action::Release(pod) => {
                write(writes)?;
                let meta = &mut self.unchanged(pod)?.metadata;
                meta.owner_references.clear();
                meta.finalizers.clear();
                let name = pod.key.name.clone();
                self.collect(&name);
            }
            Action::Untrack(tracked) | Action::UntrackStray { pod: tracked, .. } => {
                _ = self.untrack(tracked, writes)?;
            }
            Action::Delete(pod) => {
                write(writes)?;
                self.delete_unchanged(pod)?;
            }
            Action::Discard(tracked) => {
                if let Some(pod) = self.untrack(tracked, writes)? {
                    write(writes)?;
                    self.delete_unchanged(&pod)?;
                }
            }
            Action::DeleteJob => {
                write(writes)?;
                let now = at(self.now).into();
                self.edit(|job| job.metadata.deletion_timestamp = Some(now));
            }
        }
        Ok(())
    }

    fn untrack(&mut self, tracked: &Tracked, writes: &mut usize) -> Result<Option<Target>, Stop> {
        let Tracked { pod, finalizers } = tracked;
        let Some(finalizers) = finalizers else {
            return Ok(Some(pod.clone()));
        };
        write(writes)?;
        let Some(found) = self.find(pod)? else {
            return Ok(None);
        };
        self.change(&found).metadata.finalizers = finalizers.clone();
        let target = target(&self.pods[&found]);
        self.collect(&found);
        Ok(Some(target))
    }

    fn delete_unchanged(&mut self, pod: &Target) -> Result<(), Stop> {
        if let Some(name) = self.find(pod)? {
            self.delete(&name);
        }
        Ok(())
    }

    /// Returns the name of a Pod that has not changed; `None` if it is gone.
    fn find(&self, pod: &Target) -> Result<Option<String>, Stop> {
        match self.pods.get(&pod.key.name) {
            None => Ok(None),
            Some(found) if target(found) == *pod => Ok(Some(pod.key.name.clone())),
            Some(_) => refuse(Reason::Conflict),
        }
    }

    fn unchanged(&mut self, pod: &Target) -> Result<&mut core::Pod, Stop> {
        match self.find(pod)? {
            Some(name) => Ok(self.change(&name)),
            None => refuse(Reason::NotFound),
        }
    }

    /// Returns the names of Pods of a phase that are not being deleted.
    pub fn names(&self, phase: &str) -> Vec<String> {
        let pods = self.pods.values().filter(|pod| pod.status.phase == phase);
        let pods = pods.filter(|pod| pod.metadata.deletion_timestamp.is_none());
        pods.map(|pod| pod.metadata.name.clone()).collect()
    }

    /// Lets all Pods that have not ended do so, and time pass, until the Job has finished.
    pub fn finish(&mut self, code: impl Fn(&str) -> i32) {
        for _ in 0..400 {
            let again = self.reconcile().again;
            if JobView::of(self.job.clone()).finished().is_some() {
                return;
            }
            self.now += again.map_or(1, |again| again.as_secs() as i64).max(1);
            let pods: Vec<_> = self.pods.keys().cloned().collect();
            for name in pods {
                if matches!(&*self.pods[&name].status.phase, "Pending" | "Running") {
                    self.run(&name);
                    self.end(&name, code(&name));
                }
            }
        }
        panic!("does not finish: {self:#?}");
    }

    /// Returns the reason of a condition that holds.
    pub fn reason(&self, kind: &str) -> Option<&str> {
        let condition = condition::get(&self.job.status.conditions, kind)?;
        (condition.status == "True").then_some(&*condition.reason)
    }
}

pub fn job_is_indexed(job: &Job) -> bool {
    job.spec.completion_mode.as_deref() == Some("Indexed")
}

fn target(pod: &core::Pod) -> Target {
    Target::of(JobPodView::of(pod.clone()).meta())
}

fn write(writes: &mut usize) -> Result<(), Stop> {
    *writes = writes.checked_sub(1).ok_or(Stop::Crash)?;
    Ok(())
}

fn refuse<T>(reason: Reason) -> Result<T, Stop> {
    Err(Stop::Refused(ApiError::new(reason, "refused")))
}
