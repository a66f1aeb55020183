//! From nothing to a container that runs, and back.

#![warn(clippy::arithmetic_side_effects)]

use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error as Refusal;
use bollard::models::{ContainerCreateBody, ContainerInspectResponse};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, KillContainerOptionsBuilder, ListContainersOptionsBuilder,
};
use jiff::Timestamp;
use setpoint_model::Key;
use setpoint_model::time::after;
use setpoint_task::catch_panic;
use tracing::warn;

use super::identity::{CLUSTER, Identity, NODE, PAUSE, UID, filter, pod_labels};
use super::seen::{Seen, address, identity};
use super::{Pause, Shared, absent, create, refused, volume};
use crate::runtime::{
    ContainerConfig, ContainerId, Error, Origin, Pull, SandboxConfig, State, pod_label,
};

impl Shared {
    /// Starts the container that holds a Pod together, unless it runs, and fills the Pod's volumes.
    pub(super) async fn hold_together(&self, mut config: SandboxConfig) -> Result<(), Error> {
        if self
            .table
            .lock()
            .sandbox(&config.uid)
            .is_ok_and(|known| known.ready)
        {
            return Ok(());
        }
        let volumes = std::mem::take(&mut config.volumes);
        let (pod, uid) = (config.pod(), config.uid.clone());
        let image = &self.pause_image;
        let who = (uid.clone(), PAUSE.to_owned());
        self.images
            .ensure(&pod, who, image, Pull::IfNotPresent)
            .await?;

        let before = self.pauses.lock().get(&uid).cloned();
        let identity = Identity::of_pause(
            &config,
            before
                .as_ref()
                .map_or(0, |pause| pause.attempt.saturating_add(1)),
        );
        let (engine, node) = (&self.engine, self.node.as_str());
        let labels = pod_labels(&config, &engine.cluster, node);
        let made = volume::make(engine, &uid, &volumes, &labels).await;
        made.map_err(|error| refused(format!("make the volumes of {pod}"), error))?;
        let body = create::pause(engine, node, image, &identity, &config, &volumes);
        let handle = self.create(&identity, body).await?;
        let what = |step: &str| format!("{step} the sandbox of {pod}");
        let started = engine.client.start_container(&handle, None).await;
        started.map_err(|error| refused(what("start"), error))?;
        let filled = volume::fill(engine, &handle, &volumes).await;
        filled.map_err(|error| refused(what("fill the volumes of"), error))?;
        let seen = engine.client.inspect_container(&handle, None).await;
        let seen = seen.map_err(|error| refused(what("look at"), error))?;
        self.table.lock().add(config);
        let pause = Pause {
            handle,
            attempt: identity.id.attempt,
        };
        self.note_pause(&identity, pause, &Seen::of(&seen), address(&seen));
        match before {
            Some(before) => self.destroy(&before.handle).await,
            None => Ok(()),
        }
    }

    /// Takes in how the container fares that holds a Pod together; an older one than the newest is of no interest.
    pub(super) fn note_pause(
        &self,
        identity: &Identity,
        pause: Pause,
        seen: &Seen,
        address: Option<std::net::Ipv4Addr>,
    ) {
        let (uid, handle) = (&identity.id.uid, pause.handle.clone());
        {
            let mut pauses = self.pauses.lock();
            match pauses.get(uid) {
                Some(newer) if newer.attempt > pause.attempt => return,
                _ => drop(pauses.insert(uid.clone(), pause)),
            }
        }
        {
            let mut table = self.table.lock();
            table.add(identity.sandbox());
            table.name(uid, handle);
            match seen {
                Seen::Running(_) => table.restore(uid, address),
                _ => drop(table.lose(uid)),
            }
        }
        (self.wake)(&identity.pod);
    }

    /// Makes a container and starts it; gives what the engine says of it then, and where its image came from.
    pub(super) async fn launch(
        &self,
        config: &ContainerConfig,
    ) -> Result<(ContainerInspectResponse, Origin), Error> {
        let id = &config.id;
        let pod = self.table.lock().key(&id.uid);
        let pod = pod.ok_or_else(|| Error::Unknown(id.uid.clone()))?;
        let who = (id.uid.clone(), id.name.clone());
        let images = &self.images;
        let origin = images.ensure(&pod, who, &config.image, config.pull).await?;
        let pause = self.pauses.lock().get(&id.uid).cloned();
        let pause = pause.ok_or_else(|| Error::Unknown(id.uid.clone()))?;
        let user = self.image_user(config).await?;
        self.verify(config, &pod, &user)?;
        let identity = Identity::of(pod, config);
        let engine = &self.engine;
        let body = create::container(engine, &self.node, &identity, config, &pause.handle, &user);
        let handle = self.create(&identity, body).await?;
        for mount in &config.mounts {
            let copied = volume::copy(&self.engine, &handle, &mount.copies, mount.group).await;
            copied.map_err(|error| refused(format!("copy files to {id}"), error))?;
        }
        let started = self.engine.client.start_container(&handle, None).await;
        let seen = self.engine.client.inspect_container(&handle, None).await;
        let seen = seen.map_err(|error| refused(format!("look at container {id}"), error))?;
        match (Seen::of(&seen), started) {
            (Seen::Unborn, Err(error)) => {
                self.destroy(&handle).await?;
                Err(refused(format!("start container {id}"), error))
            }
            // It ran, or it failed in a way that the engine remembers.
            _ => Ok((seen, origin)),
        }
    }

    /// The user that the image names, if the container's own depends on it.
    async fn image_user(&self, config: &ContainerConfig) -> Result<String, Error> {
        let security = &config.security;
        let matters = security.run_as_non_root || security.run_as_group.is_some();
        if security.run_as_user.is_some() || !matters {
            return Ok(String::new());
        }
        let image = self.engine.client.inspect_image(&config.image).await;
        let image =
            image.map_err(|error| refused(format!("look at image {}", config.image), error))?;
        let user = image.config.and_then(|config| config.user);
        Ok(user.unwrap_or_default())
    }

    /// Refuses what would be less confined than it asks to be.
    fn verify(&self, config: &ContainerConfig, pod: &Key, image_user: &str) -> Result<(), Error> {
        let (security, id) = (&config.security, &config.id);
        let verified = security.verify_non_root(image_user, &pod_label(pod, &id.uid), &id.name);
        verified.map_err(Error::Config)?;
        let wanted = [
            (security.seccomp, "seccomp"),
            (security.app_armor, "apparmor"),
        ];
        let missing = |(wanted, name): &&(bool, &str)| *wanted && !self.engine.confines_by(name);
        match wanted.iter().find(missing) {
            Some((_, name)) => Err(Error::Config(format!(
                "cannot enforce the profile RuntimeDefault: the engine runs without {name}"
            ))),
            None => Ok(()),
        }
    }

    /// Makes the container of this name. One that was made before, and by whom the answer was lost, is used if it was
    /// started, and made anew if not.
    async fn create(
        &self,
        identity: &Identity,
        body: ContainerCreateBody,
    ) -> Result<String, Error> {
        let name = identity.name();
        let create = || {
            let options = CreateContainerOptionsBuilder::default().name(&name).build();
            self.engine
                .client
                .create_container(Some(options), body.clone())
        };
        let what = || format!("create container {name}");
        match create().await {
            Ok(created) => return Ok(created.id),
            Err(Refusal::DockerResponseServerError {
                status_code: 409, ..
            }) => {}
            Err(error) => return Err(refused(what(), error)),
        }
        let there = self.engine.client.inspect_container(&name, None).await;
        let there = there.map_err(|error| refused(what(), error))?;
        let handle = there.id.clone().unwrap_or_default();
        if self::identity(&there).as_ref() == Some(identity)
            && Seen::of(&there) != Seen::Unborn
            && !identity.is_pause()
        {
            return Ok(handle);
        }
        self.destroy(&handle).await?;
        create()
            .await
            .map(|created| created.id)
            .map_err(|error| refused(what(), error))
    }

    /// Asks a container to stop as its image wants to be asked, and kills it when its time is up.
    pub(super) async fn stop(
        self: &Arc<Self>,
        id: &ContainerId,
        grace: Duration,
    ) -> Result<(), Error> {
        let deadline = after(Timestamp::now(), grace);
        let (handle, first) = {
            let mut table = self.table.lock();
            let container = table.container(id)?;
            match container.state {
                State::Running {
                    stopping: Some(sooner),
                    ..
                } if sooner <= deadline => return Ok(()),
                State::Running { stopping, .. } => (container.handle.clone(), stopping.is_none()),
                _ => return Ok(()),
            }
        };
        if first && !grace.is_zero() {
            self.ask(id, &handle).await?;
        }
        if let Ok(container) = self.table.lock().container(id)
            && let State::Running { stopping, .. } = &mut container.state
        {
            *stopping = Some(deadline);
        }
        if grace.is_zero() {
            self.kill(&handle, "SIGKILL").await;
            return Ok(());
        }
        let this = Arc::clone(self);
        // Should it panic, the next list enforces what is overdue.
        tokio::spawn(catch_panic("stop", async move {
            tokio::time::sleep(grace).await;
            this.enforce().await;
        }));
        Ok(())
    }

    async fn ask(&self, id: &ContainerId, handle: &str) -> Result<(), Error> {
        let seen = match self.engine.client.inspect_container(handle, None).await {
            Err(error) if absent(&error) => return Ok(()),
            seen => seen.map_err(|error| refused(format!("stop container {id}"), error))?,
        };
        let signal = seen.config.and_then(|config| config.stop_signal);
        self.kill(handle, signal.as_deref().unwrap_or("SIGTERM"))
            .await;
        Ok(())
    }

    /// Kills whatever had its time to stop. What cannot be reached now is killed after the next list.
    pub(super) async fn enforce(&self) {
        let now = Timestamp::now();
        let alive = self.table.lock().alive();
        let late = |state: &State| matches!(state, State::Running { stopping: Some(by), .. } if *by <= now);
        for container in alive.iter().filter(|container| late(&container.state)) {
            self.kill(&container.handle, "SIGKILL").await;
        }
    }

    pub(super) async fn kill(&self, handle: &str, signal: &str) {
        let options = KillContainerOptionsBuilder::default()
            .signal(signal)
            .build();
        match self
            .engine
            .client
            .kill_container(handle, Some(options))
            .await
        {
            Ok(())
            | Err(Refusal::DockerResponseServerError {
                status_code: 404 | 409,
                ..
            }) => {}
            Err(error) => warn!(container = handle, signal, %error, "not signalled"),
        }
    }

    /// Removes everything that the engine has of a Pod.
    pub(super) async fn take_apart(&self, uid: &str) -> Result<(), Error> {
        let labels = [
            (CLUSTER, self.engine.cluster.as_str()),
            (NODE, &self.node),
            (UID, uid),
        ];
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filter(&labels))
            .build();
        let what = || format!("remove what is left of Pod {uid}");
        let left = self.engine.client.list_containers(Some(options)).await;
        for container in left.map_err(|error| refused(what(), error))? {
            self.destroy(container.id.as_deref().unwrap_or_default())
                .await?;
        }
        let removed = volume::remove(&self.engine.client, &labels).await;
        removed.map_err(|error| refused(what(), error))?;
        self.pauses.lock().remove(uid);
        self.images.forget(uid);
        Ok(())
    }
}
