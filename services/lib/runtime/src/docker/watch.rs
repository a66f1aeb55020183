//! Keeps the state in memory up to date: lists the engine's containers, then follows its events, and lists again when
//! the stream ends.

use std::collections::HashMap;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{ContainerInspectResponse, ContainerSummary, ContainerSummaryStateEnum};
use bollard::query_parameters::{EventsOptionsBuilder, ListContainersOptionsBuilder};
use futures::StreamExt as _;
use jiff::Timestamp;
use setpoint_task::Backoff;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::identity::{CLUSTER, Identity, NODE, filter};
use super::state::{EngineState, OOM_KILLED, address, identity, lost_exit, sandbox};
use super::{Pause, Shared, ask, is_not_found, resize};
use crate::{Container, ContainerId, State};

/// Relist interval: an engine that hangs sends no events.
const RELIST: Duration = Duration::from_secs(60);
/// Seconds by which the event stream starts before the list, so that nothing is missed in between. The engine's `since`
/// has whole seconds.
const OVERLAP: i64 = 2;

impl Shared {
    /// Follows the engine until dropped, and reconnects with backoff.
    pub(super) async fn watch(&self) {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
        loop {
            if let Err(error) = self.follow(&mut backoff).await {
                warn!(%error, "lost the connection to the container engine; reconnecting");
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    async fn follow(&self, backoff: &mut Backoff) -> Result<(), Error> {
        let mut filters = filter(&[(CLUSTER, &self.engine.cluster), (NODE, &self.node)]);
        let events = ["create", "start", "die", "oom", "destroy"];
        filters.extend([
            ("type".to_owned(), vec!["container".to_owned()]),
            ("event".to_owned(), events.map(str::to_owned).to_vec()),
        ]);
        let since = (Timestamp::now().as_second() - OVERLAP).to_string();
        let options = EventsOptionsBuilder::default()
            .since(&since)
            .filters(&filters)
            .build();
        let mut events = std::pin::pin!(self.engine.client.events(Some(options)));
        let mut relist = interval(RELIST);
        relist.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => {
                        let actor = event?.actor.and_then(|actor| actor.id);
                        self.refresh(&actor.unwrap_or_default()).await?;
                    }
                    None => return Ok(()),
                },
                _ = relist.tick() => {
                    self.relist().await?;
                    backoff.reset();
                }
            }
        }
    }

    /// Refreshes all containers of this node whose listed state differs from the one in memory, including those that
    /// are no longer listed.
    pub(super) async fn relist(&self) -> Result<(), Error> {
        let filters = filter(&[(CLUSTER, &self.engine.cluster), (NODE, &self.node)]);
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let client = &self.engine.client;
        let list = ask(|| client.list_containers(Some(options.clone()))).await?;
        let known: HashMap<_, _> = self.known().into_iter().collect();
        for summary in list.iter().filter(|summary| is_news(summary, &known)) {
            self.refresh(summary.id.as_deref().unwrap_or_default())
                .await?;
        }
        let listed = |id: &String| list.iter().any(|summary| summary.id.as_ref() == Some(id));
        for (id, _) in known.iter().filter(|(id, _)| !listed(id)) {
            self.refresh(id).await?;
        }
        self.kill_overdue().await;
        Ok(())
    }

    /// Returns the engine's ids of all known containers, and whether each has not exited.
    fn known(&self) -> Vec<(String, bool)> {
        let pauses = self.pauses.lock();
        let pauses = pauses
            .values()
            .map(|pause| (pause.runtime_id.clone(), true));
        let table = self.table.lock();
        let all = table.containers().into_iter();
        let all = all.map(|found| {
            (
                found.runtime_id.clone(),
                !matches!(found.state, State::Exited(_)),
            )
        });
        pauses
            .chain(all)
            .filter(|(runtime_id, _)| !runtime_id.is_empty())
            .collect()
    }

    /// Updates one container from the engine and wakes its Pod.
    async fn refresh(&self, runtime_id: &str) -> Result<(), Error> {
        let client = &self.engine.client;
        match ask(|| client.inspect_container(runtime_id, None)).await {
            Ok(container) => self.update(&container).await,
            Err(error) if is_not_found(&error) => self.mark_gone(runtime_id),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Updates the state from an inspected container.
    pub(super) async fn update(&self, container: &ContainerInspectResponse) {
        let Some(identity) = identity(container) else {
            return;
        };
        let runtime_id = container.id.clone().unwrap_or_default();
        let state = EngineState::of(container);
        if identity.is_pause() {
            let pause = Pause {
                runtime_id,
                attempt: identity.id.attempt,
            };
            self.update_pause(&identity, pause, &state, address(container));
            return;
        }
        if state == EngineState::Created {
            return;
        }
        let state = match state {
            EngineState::Exited(exit) if !self.has_exited(&identity.id) => {
                EngineState::Exited(self.with_message(container, &identity, exit).await)
            }
            state => state,
        };
        let restarted = self.update_container(known(container, &identity), &identity, &state);
        if restarted {
            // Another client restarted it; a newer attempt may be running already.
            info!(container = %identity.id, "killing a container that was restarted after it had exited");
            self.kill(&runtime_id, "SIGKILL").await;
        }
        (self.wake)(&identity.pod);
    }

    fn has_exited(&self, id: &ContainerId) -> bool {
        let mut table = self.table.lock();
        let known = table.container(id);
        known.is_ok_and(|known| matches!(known.state, State::Exited(_)))
    }

    /// Updates a container's state; returns whether it runs although it had exited.
    fn update_container(&self, known: Container, identity: &Identity, state: &EngineState) -> bool {
        let id = &identity.id;
        let mut table = self.table.lock();
        if table.key(&id.uid).is_none() {
            table.add(identity.sandbox());
            table.set_lost(&id.uid);
        }
        let before = table.container(id).map(|known| known.state.clone());
        table.update_ids(&known);
        // Cannot fail: its sandbox was added above.
        let _ = table.insert(known);
        match state {
            EngineState::Running(since) => table.set_running(id, *since),
            EngineState::Exited(exit) => {
                table.set_exited(id, exit.clone());
                if exit.reason() == OOM_KILLED {
                    table.set_reason(id, OOM_KILLED);
                }
            }
            EngineState::Created => {}
        }
        matches!(
            (before, state),
            (Ok(State::Exited(_)), EngineState::Running(_))
        )
    }

    /// Marks a container that the engine no longer has as exited, or a pause container's sandbox as lost.
    fn mark_gone(&self, runtime_id: &str) {
        let lost_pause = {
            let pauses = self.pauses.lock();
            pauses
                .iter()
                .find(|(_, pause)| pause.runtime_id == runtime_id)
                .map(|(uid, _)| uid.clone())
        };
        let mut table = self.table.lock();
        let pod = match lost_pause {
            Some(uid) => table.set_lost(&uid),
            None => {
                let gone = table
                    .alive()
                    .into_iter()
                    .find(|known| known.runtime_id == runtime_id);
                gone.and_then(|gone| table.set_exited(&gone.id, lost_exit()))
            }
        };
        drop(table);
        if let Some(pod) = pod {
            (self.wake)(&pod);
        }
    }
}

/// Returns a container as the engine describes it, in the state `Starting`.
fn known(container: &ContainerInspectResponse, identity: &Identity) -> Container {
    let config = container.config.as_ref();
    let image = config.and_then(|config| config.image.clone());
    Container {
        id: identity.id.clone(),
        sandbox: sandbox(container),
        image: image.unwrap_or_default(),
        image_id: container.image.clone().unwrap_or_default(),
        runtime_id: container.id.clone().unwrap_or_default(),
        backoff: identity.backoff,
        round: identity.round,
        resources: resize::started_with(container),
        state: State::Starting,
    }
}

/// Returns whether the listed state of a container differs from the one in memory.
fn is_news(summary: &ContainerSummary, known: &HashMap<String, bool>) -> bool {
    use ContainerSummaryStateEnum as State;
    let runs = matches!(
        summary.state,
        Some(State::RUNNING | State::PAUSED | State::RESTARTING)
    );
    summary.id.as_ref().and_then(|id| known.get(id)) != Some(&runs)
}
