//! Keeps memory like the engine: a list first, then events, and a list again whenever they broke off.

use std::collections::HashMap;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{ContainerInspectResponse, ContainerSummary, ContainerSummaryStateEnum};
use bollard::query_parameters::{EventsOptionsBuilder, ListContainersOptionsBuilder};
use futures::StreamExt as _;
use jiff::Timestamp;
use setpoint_controller::Backoff;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::identity::{CLUSTER, Identity, NODE, filter};
use super::seen::{Seen, address, identity, lost, sandbox};
use super::{Pause, Shared, absent};
use crate::runtime::{Container, State};

/// How often everything is looked at though no event said so: an engine that hangs sends none.
const RELIST: Duration = Duration::from_secs(60);
/// Events that come while the list is made must not be missed; the engine counts in seconds.
const OVERLAP: i64 = 2;

impl Shared {
    /// Follows the engine for ever, through its restarts.
    pub(super) async fn watch(&self) {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
        loop {
            if let Err(error) = self.follow(&mut backoff).await {
                warn!(%error, "the engine is out of sight");
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
                        self.look(&actor.unwrap_or_default()).await?;
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

    /// Looks at all containers of this node, and at those that should be there and are not.
    pub(super) async fn relist(&self) -> Result<(), Error> {
        let filters = filter(&[(CLUSTER, &self.engine.cluster), (NODE, &self.node)]);
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let list = self.engine.client.list_containers(Some(options)).await?;
        let known: HashMap<_, _> = self.known().into_iter().collect();
        for summary in list.iter().filter(|summary| is_news(summary, &known)) {
            self.look(summary.id.as_deref().unwrap_or_default()).await?;
        }
        let listed = |id: &String| list.iter().any(|summary| summary.id.as_ref() == Some(id));
        for (id, _) in known.iter().filter(|(id, _)| !listed(id)) {
            self.look(id).await?;
        }
        self.enforce().await;
        Ok(())
    }

    /// The engine's ids of what memory takes to run, or to have ended.
    fn known(&self) -> Vec<(String, bool)> {
        let pauses = self.pauses.lock();
        let pauses = pauses.values().map(|pause| (pause.handle.clone(), true));
        let table = self.table.lock();
        let all = table.all().into_iter();
        let all = all.map(|found| {
            (
                found.handle.clone(),
                !matches!(found.state, State::Exited(_)),
            )
        });
        pauses
            .chain(all)
            .filter(|(handle, _)| !handle.is_empty())
            .collect()
    }

    /// Brings the memory of one container up to what the engine says, and wakes its Pod if that was news.
    async fn look(&self, handle: &str) -> Result<(), Error> {
        match self.engine.client.inspect_container(handle, None).await {
            Ok(container) => self.note(&container).await,
            Err(error) if absent(&error) => self.miss(handle),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Takes in what the engine says of a container.
    pub(super) async fn note(&self, container: &ContainerInspectResponse) {
        let Some(identity) = identity(container) else {
            return;
        };
        let handle = container.id.clone().unwrap_or_default();
        let seen = Seen::of(container);
        if identity.is_pause() {
            let pause = Pause {
                handle,
                attempt: identity.id.attempt,
            };
            self.note_pause(&identity, pause, &seen, address(container));
            return;
        }
        if seen == Seen::Unborn {
            return;
        }
        let over = self.note_container(known(container, &identity), &identity, &seen);
        if over {
            // Somebody started it again behind the agent's back, and another attempt may run by now.
            info!(container = %identity.id, "its time was over; it is killed");
            self.kill(&handle, "SIGKILL").await;
        }
        (self.wake)(&identity.pod);
    }

    /// Takes in how a container fares; says whether it runs although it had ended.
    fn note_container(&self, known: Container, identity: &Identity, seen: &Seen) -> bool {
        let id = &identity.id;
        let mut table = self.table.lock();
        if table.key(&id.uid).is_none() {
            table.add(identity.sandbox());
            table.lose(&id.uid);
        }
        let before = table.container(id).map(|known| known.state.clone());
        table.recognise(&known);
        // Its sandbox is there: it was added above, if need be.
        let _ = table.insert(known);
        match seen {
            Seen::Running(since) => table.started(id, *since),
            Seen::Exited(exit) => drop(table.exited(id, exit.clone())),
            Seen::Unborn => {}
        }
        matches!((before, seen), (Ok(State::Exited(_)), Seen::Running(_)))
    }

    /// The engine knows a container no longer.
    fn miss(&self, handle: &str) {
        let lost_pause = {
            let pauses = self.pauses.lock();
            pauses
                .iter()
                .find(|(_, pause)| pause.handle == handle)
                .map(|(uid, _)| uid.clone())
        };
        let mut table = self.table.lock();
        let pod = match lost_pause {
            Some(uid) => table.lose(&uid),
            None => {
                let gone = table
                    .alive()
                    .into_iter()
                    .find(|known| known.handle == handle);
                gone.and_then(|gone| table.exited(&gone.id, lost()))
            }
        };
        drop(table);
        if let Some(pod) = pod {
            (self.wake)(&pod);
        }
    }
}

/// A container as the engine describes it, but for how it fares.
fn known(container: &ContainerInspectResponse, identity: &Identity) -> Container {
    let config = container.config.as_ref();
    let image = config.and_then(|config| config.image.clone());
    Container {
        id: identity.id.clone(),
        sandbox: sandbox(container),
        image: image.unwrap_or_default(),
        image_id: container.image.clone().unwrap_or_default(),
        handle: container.id.clone().unwrap_or_default(),
        backoff: identity.backoff,
        state: State::Starting,
    }
}

/// Is what the engine lists of a container other than what memory has?
fn is_news(summary: &ContainerSummary, known: &HashMap<String, bool>) -> bool {
    use ContainerSummaryStateEnum as State;
    let runs = matches!(
        summary.state,
        Some(State::RUNNING | State::PAUSED | State::RESTARTING)
    );
    summary.id.as_ref().and_then(|id| known.get(id)) != Some(&runs)
}
