//! Keeps the state in memory up to date: lists what the runtime has, then follows its events, and lists again when the
//! stream ends. Of a runtime without events, and until the first one comes, lists in an interval.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{FutureExt as _, TryStreamExt as _};
use k8s_cri::v1::{
    Container as Listed, ContainerEventResponse, ContainerFilter, ContainerState, PodSandbox,
    PodSandboxFilter, PodSandboxState,
};
use setpoint_task::Backoff;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tonic::Status;
use tracing::{info, warn};

use super::events::{Events, Next};
use super::sandboxes::given;
use super::{Attempt, Shared, identity, log, state};
use crate::termination::{MAX_LOG, MAX_LOG_LINES, of_file, of_log};
use crate::{Container, ContainerConfig, ContainerId, Exit, LogOptions, State, log_file};

/// Interval at which the status of the runtime is asked for, as in the kubelet.
const STATUS: Duration = Duration::from_secs(5);
/// Interval at which everything is listed although the runtime sends events: one that hangs sends none, and containerd
/// none of the end of a sandbox that it was not asked for.
const RELIST: Duration = Duration::from_secs(10);

/// The runtime's id of a container, its own, and whether it has exited.
type Known = HashMap<String, (ContainerId, bool)>;

impl Shared {
    /// Follows the runtime until dropped, and begins again with backoff.
    pub(super) async fn watch(&self) {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
        loop {
            if let Err(status) = self.follow(&mut backoff).await {
                warn!(%status, "lost the container runtime; listing again");
                self.check().await;
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    async fn follow(&self, backoff: &mut Backoff) -> Result<(), Status> {
        let mut events = match self.has_no_events.load(Ordering::Relaxed) {
            true => Events::None,
            false => Events::of(&self.service),
        };
        // As long as it has not answered, it may be one without events.
        let (mut relist, mut status) = (ticks(self.relist_period), ticks(STATUS));
        loop {
            tokio::select! {
                next = events.next() => match next? {
                    Next::Event(first) => self.handle(&first, &mut events).await?,
                    Next::End => return Ok(()),
                    Next::Answer if events.are_sent() => relist = ticks(RELIST),
                    Next::Answer => {
                        info!("the container runtime sends no events; listing containers instead");
                        self.has_no_events.store(true, Ordering::Relaxed);
                    }
                },
                _ = relist.tick() => {
                    self.relist(None).await?;
                    backoff.reset();
                }
                _ = status.tick() => self.check().await,
            }
        }
    }

    /// Asks the runtime whether it is ready, and remembers the reason if it is not.
    pub(super) async fn check(&self) {
        let obstacle = self.service.ready().await.err();
        let before = std::mem::replace(&mut *self.obstacle.lock(), obstacle.clone());
        match obstacle {
            Some(why) if before.as_ref() != Some(&why) => {
                warn!(%why, "the container runtime is not ready")
            }
            None if before.is_some() => info!("the container runtime is ready"),
            _ => {}
        }
    }

    /// Lists the Pods of an event and of those that are ready already, each once.
    async fn handle(
        &self,
        first: &ContainerEventResponse,
        events: &mut Events,
    ) -> Result<(), Status> {
        let mut sandboxes = vec![sandbox_of(first)];
        while let Some(next) = events.next().now_or_never() {
            match next? {
                Next::Event(event) => sandboxes.push(sandbox_of(&event)),
                Next::Answer | Next::End => break,
            }
        }
        sandboxes.sort_unstable();
        sandboxes.dedup();
        for sandbox in sandboxes {
            let scope = (!sandbox.is_empty()).then_some(sandbox.as_str());
            self.relist(scope).await?;
        }
        Ok(())
    }

    /// Updates the state of the containers of a sandbox, or of all, from the runtime's.
    pub(super) async fn relist(&self, sandbox: Option<&str>) -> Result<(), Status> {
        // Before the list, so that what is made meanwhile is not missed in it.
        let (known, known_sandboxes) = (self.known(sandbox), self.known_sandboxes(sandbox));
        let scope = sandbox.unwrap_or_default().to_owned();
        let labels = identity::of_node(&self.node);
        let sandboxes = self.list_sandboxes_by(PodSandboxFilter {
            id: scope.clone(),
            label_selector: labels.clone(),
            ..PodSandboxFilter::default()
        });
        let sandboxes = sandboxes.await?;
        let containers = self.list_containers(ContainerFilter {
            pod_sandbox_id: scope,
            label_selector: labels,
            ..ContainerFilter::default()
        });
        let containers = containers.await?;
        let replaced = self.update_sandboxes(&sandboxes).await?;
        for container in containers.iter().filter(|one| is_news(one, &known)) {
            self.refresh(container).await?;
        }
        let listed = |id: &str| containers.iter().any(|one| one.id == id);
        for (_, (id, _)) in known
            .iter()
            .filter(|(id, (_, exited))| !exited && !listed(id))
        {
            self.set_exited(id, state::lost());
        }
        for (uid, id) in known_sandboxes {
            if sandboxes.iter().all(|one| one.id != id) {
                self.set_lost(&uid, &id);
            }
        }
        if sandbox.is_none() {
            self.collect(&replaced, &containers).await;
        }
        Ok(())
    }

    fn known(&self, sandbox: Option<&str>) -> Known {
        let containers = self.table.lock().containers().into_iter();
        let containers = containers.filter(|one| {
            !one.runtime_id.is_empty() && sandbox.is_none_or(|sandbox| one.sandbox == sandbox)
        });
        containers
            .map(|one| {
                (
                    one.runtime_id,
                    (one.id, matches!(one.state, State::Exited(_))),
                )
            })
            .collect()
    }

    /// Returns the uids of Pods with the ids of their sandboxes.
    fn known_sandboxes(&self, sandbox: Option<&str>) -> Vec<(String, String)> {
        let sandboxes = self.sandboxes.lock();
        let all = sandboxes
            .iter()
            .map(|(uid, known)| (uid.clone(), known.runtime_id.clone()));
        all.filter(|(_, id)| sandbox.is_none_or(|sandbox| id == sandbox))
            .collect()
    }

    /// Updates the newest sandbox of each Pod. Returns the others.
    async fn update_sandboxes(&self, listed: &[PodSandbox]) -> Result<Vec<PodSandbox>, Status> {
        let mut newest: HashMap<&str, &PodSandbox> = HashMap::new();
        let uid = |one: &'_ PodSandbox| one.metadata.as_ref().map(|meta| meta.uid.clone());
        let mut replaced = Vec::new();
        for one in listed {
            let key = one.metadata.as_ref().map_or("", |meta| meta.uid.as_str());
            match newest.get(key) {
                Some(other) if Attempt::of(other) > Attempt::of(one) => replaced.push(one.clone()),
                _ => replaced.extend(newest.insert(key, one).cloned()),
            }
        }
        for one in newest.into_values() {
            let is_incomplete = uid(one).is_some_and(|uid| self.incomplete.lock().contains(&uid));
            if !is_incomplete {
                self.update_sandbox(one).await?;
            }
        }
        Ok(replaced)
    }

    async fn update_sandbox(&self, listed: &PodSandbox) -> Result<(), Status> {
        let Some(mut config) = identity::sandbox(&listed.annotations) else {
            return Ok(());
        };
        let is_ready = listed.state() == PodSandboxState::SandboxReady;
        let known = self.table.lock().sandbox(&config.uid).ok().cloned();
        let known = known.filter(|known| known.id == listed.id);
        if known.as_ref().is_some_and(|known| known.ready == is_ready) {
            return Ok(());
        }
        if let Some(first) = config.first_user {
            self.user_ids.lock().adopt(&config.uid, first);
        }
        let address = match is_ready {
            true => self.address(&listed.id).await?,
            // One that has died is reported with the address that it had.
            false => known.map(|known| known.config.ip),
        };
        config.ip = given(&config, address);
        self.set_sandbox(config, Attempt::of(listed), is_ready);
        Ok(())
    }

    /// Updates a container from the runtime, and wakes its Pod.
    pub(super) async fn refresh(&self, listed: &Listed) -> Result<(), Status> {
        let Some(config) = identity::container(&listed.annotations) else {
            return Ok(());
        };
        let Some(status) = self.known_status(&listed.id).await? else {
            self.set_exited(&config.id, state::lost());
            return Ok(());
        };
        let state = match state::of(&status) {
            Some(State::Exited(exit)) if !self.is_exited(&config.id) => {
                Some(State::Exited(self.with_message(&config, exit).await))
            }
            state => state,
        };
        let known = Container {
            sandbox: listed.pod_sandbox_id.clone(),
            image_id: status.image_ref,
            runtime_id: listed.id.clone(),
            ..Container::starting(&config)
        };
        if let Some(state) = state {
            self.update_container(known, config, state);
        }
        Ok(())
    }

    fn is_exited(&self, id: &ContainerId) -> bool {
        let mut table = self.table.lock();
        let known = table.container(id);
        known.is_ok_and(|known| matches!(known.state, State::Exited(_)))
    }

    fn update_container(&self, known: Container, config: ContainerConfig, state: State) {
        let id = known.id.clone();
        let pod = {
            let mut table = self.table.lock();
            let Some(pod) = table.key(&id.uid) else {
                // Its sandbox is gone, or about to be listed.
                return;
            };
            table.update_ids(&known);
            // Cannot fail: its sandbox is known.
            let _ = table.insert(known);
            match state {
                State::Running { since, .. } => table.set_running(&id, since),
                State::Exited(exit) => drop(table.set_exited(&id, exit)),
                State::Starting => {}
            }
            pod
        };
        self.configs.lock().entry(id).or_insert(config);
        (self.wake)(&pod);
    }

    fn set_exited(&self, id: &ContainerId, exit: Exit) {
        let pod = self.table.lock().set_exited(id, exit);
        if let Some(pod) = pod {
            (self.wake)(&pod);
        }
    }

    /// Marks a sandbox as lost, unless it has been replaced meanwhile.
    fn set_lost(&self, uid: &str, runtime_id: &str) {
        let pod = {
            let mut table = self.table.lock();
            let is_current = table.sandbox(uid).is_ok_and(|known| known.id == runtime_id);
            is_current.then(|| table.set_lost(uid)).flatten()
        };
        if let Some(pod) = pod {
            (self.wake)(&pod);
        }
    }

    /// Adds the termination message of a container to its end.
    async fn with_message(&self, config: &ContainerConfig, exit: Exit) -> Exit {
        let (id, message) = (&config.id, &config.termination_message);
        if message.path.is_empty() || !exit.message.is_empty() {
            return exit;
        }
        let read = self.files.message(id);
        let read = read.unwrap_or_else(|error| {
            warn!(container = %id, %error, "cannot read the termination message");
            Vec::new()
        });
        let mut text = of_file(&read);
        if text.is_empty() && message.falls_back_to_logs && exit.code != 0 {
            text = self.end_of_log(id).await;
        }
        Exit {
            message: text,
            ..exit
        }
    }

    async fn end_of_log(&self, id: &ContainerId) -> String {
        let Some(sandbox) = self.sandbox_config(&id.uid) else {
            return String::new();
        };
        let lines = u64::try_from(MAX_LOG_LINES).unwrap_or(u64::MAX);
        let path = self.files.log(&sandbox, id);
        let Ok(log) = log_file::read(&id.to_string(), path, Some(lines), false, || true) else {
            return String::new();
        };
        let pieces = log::decoded(log, &LogOptions::default());
        let end = pieces.try_fold(Vec::new(), |mut end, piece| async move {
            end.extend_from_slice(&piece);
            // Lines may be long.
            let excess = end.len().saturating_sub(MAX_LOG);
            end.drain(..excess);
            Ok(end)
        });
        of_log(&end.await.unwrap_or_default())
    }
}

/// Returns an interval that begins now.
fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn sandbox_of(event: &ContainerEventResponse) -> String {
    let status = event.pod_sandbox_status.as_ref();
    status.map_or_else(String::new, |status| status.id.clone())
}

/// Returns whether the listed state of a container differs from the one in memory.
fn is_news(listed: &Listed, known: &Known) -> bool {
    let exited = known.get(&listed.id).map(|(_, exited)| *exited);
    match listed.state() {
        ContainerState::ContainerExited => exited != Some(true),
        ContainerState::ContainerRunning => exited.is_none(),
        // One that is not in memory may be about to start, see `launch`.
        ContainerState::ContainerUnknown => exited == Some(false),
        ContainerState::ContainerCreated => false,
    }
}
