//! Creates, starts and removes containers.

#![warn(clippy::arithmetic_side_effects)]

use std::sync::Arc;

use bollard::models::{ContainerCreateBody, ContainerInspectResponse, Mount};
use bollard::query_parameters::ListContainersOptionsBuilder;
use setpoint_model::Key;

use super::creation::Created;
use super::identity::{CLUSTER, Identity, NODE, PAUSE, UID, filter, pod_labels};
use super::state::{EngineState, address, identity};
use super::{Pause, Shared, create, engine_error, resolv_conf, termination, volume};
use crate::{
    ContainerConfig, ContainerId, Error, ImageOrigin, Keyring, Processes, Profile, Pull,
    SandboxConfig, pod_label,
};

impl Shared {
    /// Creates and starts a Pod's pause container, unless it runs, and fills the Pod's volumes.
    pub(super) async fn run_pod_sandbox(&self, mut config: SandboxConfig) -> Result<(), Error> {
        if self
            .table
            .lock()
            .sandbox(&config.uid)
            .is_ok_and(|known| known.ready)
        {
            return Ok(());
        }
        let mut volumes = std::mem::take(&mut config.volumes);
        volumes.push(termination::volume());
        let (pod, uid) = (config.pod(), config.uid.clone());
        let image = &self.pause_image;
        let container_key = (uid.clone(), PAUSE.to_owned());
        let (pull, keyring) = (Pull::IfNotPresent, Keyring::default());
        let ensured = self
            .images
            .ensure(&pod, container_key, image, pull, &keyring);
        ensured.await?;
        let before = {
            let (known, mut incomplete) = (self.pauses.lock(), self.incomplete.lock());
            let before = incomplete.entry(uid.clone());
            before.or_insert_with(|| known.get(&uid).cloned()).clone()
        };
        let identity = Identity::of_pause(
            &config,
            before
                .as_ref()
                .map_or(0, |pause| pause.attempt.saturating_add(1)),
        );
        let (engine, node) = (&self.engine, self.node.as_str());
        let labels = pod_labels(&config, &engine.cluster, node);
        let made = volume::create(engine, &uid, &volumes, &labels).await;
        made.map_err(|error| engine_error(format!("create the volumes of {pod}"), error))?;
        let mut body = create::pause(engine, node, image, &identity, &config, &volumes);
        if let (Some(helper), Some(host)) = (self.helper_mount(), &mut body.host_config) {
            host.mounts.get_or_insert_default().push(helper);
        }
        let cgroup = self.make_cgroup(&config).await?;
        if let (Some(host), true) = (&mut body.host_config, cgroup.is_some()) {
            host.cgroup_parent.clone_from(&cgroup);
        }
        let runtime_id = self.create(&identity, body).await?.runtime_id;
        let what = |step: &str| format!("{step} the sandbox of {pod}");
        let started = engine.client.start_container(&runtime_id, None).await;
        let inspected = engine.client.inspect_container(&runtime_id, None).await;
        let inspected = inspected.map_err(|error| engine_error(what("inspect"), error))?;
        let state = EngineState::of(&inspected);
        if let (Err(error), false) = (started, matches!(state, EngineState::Running(_))) {
            return Err(engine_error(what("start"), error));
        }
        if cgroup.is_some() {
            self.verify_cgroup(&uid, &runtime_id);
        }
        self.fill_volumes(&uid, &volumes, &labels).await?;
        let ip = address(&inspected).unwrap_or(config.ip);
        let hosts = config.hosts.file(config.hostname(), ip, None);
        self.make_hosts(&uid, hosts).await?;
        {
            let (mut table, resources) = (self.table.lock(), config.resources);
            table.add(config);
            // An event of the engine may have added it first, without what labels do not contain.
            table.sandbox(&uid)?.config.resources = resources;
        }
        let pause = Pause {
            runtime_id,
            attempt: identity.id.attempt,
        };
        if let Some(before) = before {
            self.destroy(&before.runtime_id).await?;
        }
        self.incomplete.lock().remove(&uid);
        self.update_pause(&identity, pause, &state, address(&inspected));
        Ok(())
    }

    /// Updates a sandbox from the state of its pause container. Ignores attempts older than the newest. It is ready
    /// only once it is complete.
    pub(super) fn update_pause(
        &self,
        identity: &Identity,
        pause: Pause,
        state: &EngineState,
        address: Option<std::net::Ipv4Addr>,
    ) {
        let (uid, runtime_id) = (&identity.id.uid, pause.runtime_id.clone());
        {
            let mut pauses = self.pauses.lock();
            match pauses.get(uid) {
                Some(newer) if newer.attempt > pause.attempt => return,
                _ => drop(pauses.insert(uid.clone(), pause)),
            }
        }
        let is_complete = !self.incomplete.lock().contains_key(uid);
        {
            let mut table = self.table.lock();
            table.add(identity.sandbox());
            table.set_sandbox_id(uid, runtime_id);
            match state {
                EngineState::Running(_) if is_complete => table.set_ready(uid, address),
                _ => drop(table.set_lost(uid)),
            }
        }
        (self.wake)(&identity.pod);
    }

    /// Creates and starts a container; returns its state in the engine and the origin of its image.
    pub(super) async fn launch(
        self: &Arc<Self>,
        mut config: ContainerConfig,
    ) -> Result<(ContainerInspectResponse, ImageOrigin), Error> {
        let (uid, name) = (config.id.uid.clone(), config.id.name.clone());
        let unknown = || Error::Unknown(uid.clone());
        let pod = self.table.lock().key(&uid).ok_or_else(unknown)?;
        self.resolve_image_volumes(&pod, &mut config).await?;
        let (key, image) = ((uid.clone(), name), &config.image);
        let ensured = self
            .images
            .ensure(&pod, key, image, config.pull, &config.keyring);
        let origin = ensured.await?;
        let pause = self.pauses.lock().get(&uid).cloned();
        let pause = pause.ok_or_else(unknown)?.runtime_id;
        let user = self.image_user(&config).await?;
        self.verify(&config, &pod, &user)?;
        let identity = Identity::of(pod, &config);
        let _bound = self.bind_sub_paths(&mut config).await?;
        let files = self.own_files(&identity, &config, &pause).await?;
        let processes = self.shared_processes(&config.processes, &pause)?;
        let (engine, node) = (&self.engine, &self.node);
        let mut body = create::container(engine, node, &identity, &config, &pause, &user, files);
        if let Some(host) = &mut body.host_config {
            host.cgroup_parent = self.cgroup_of(&uid);
            host.pid_mode = processes.map(|runtime_id| format!("container:{runtime_id}"));
        }
        let inspected = self.run(&config.id, &identity, body).await?;
        Ok((inspected, origin))
    }

    /// Returns the mounts of the files that the agent makes for a container: that of its termination message, its
    /// resolver configuration, and the hosts file of its Pod.
    async fn own_files(
        &self,
        identity: &Identity,
        config: &ContainerConfig,
        pause: &str,
    ) -> Result<impl Iterator<Item = Mount> + use<>, Error> {
        let id = &config.id;
        let failed = |what: &str, error| engine_error(format!("{what} of {id}"), error);
        let file = self.message_file(identity, &config.termination_message);
        let file = file.await;
        let file = file.map_err(|error| failed("create the message file", error))?;
        let mut mounts = config.mounts.iter();
        let replaced = mounts.any(|mount| mount.path == resolv_conf::PATH);
        let resolver = match &config.dns {
            Some(dns) if !replaced => Some(Box::pin(self.resolv_conf(&id.uid, pause, dns)).await),
            _ => None,
        };
        let resolver = resolver.transpose();
        let resolver =
            resolver.map_err(|error| failed("write the resolver configuration", error))?;
        let hosts = self.hosts_mount(config, pause).await;
        let hosts = hosts.map_err(|error| failed("find the hosts file", error))?;
        Ok(file.into_iter().chain(resolver).chain(hosts))
    }

    /// Returns the container of the engine whose processes a container shares; `None` if it has its own.
    fn shared_processes(
        &self,
        processes: &Processes,
        pause: &str,
    ) -> Result<Option<String>, Error> {
        Ok(match processes {
            Processes::Own => None,
            Processes::OfPod => Some(pause.to_owned()),
            Processes::Of(target) => Some(self.table.lock().running(target)?.runtime_id.clone()),
        })
    }

    /// Creates a container and starts it, unless an earlier call has; returns its state.
    async fn run(
        &self,
        id: &ContainerId,
        identity: &Identity,
        body: ContainerCreateBody,
    ) -> Result<ContainerInspectResponse, Error> {
        let Created {
            runtime_id,
            is_earlier,
        } = self.create(identity, body).await?;
        let client = &self.engine.client;
        // One that has ended would run a second time.
        let started = match is_earlier {
            true => Ok(()),
            false => client.start_container(&runtime_id, None).await,
        };
        let inspected = client.inspect_container(&runtime_id, None).await;
        let inspected =
            inspected.map_err(|error| engine_error(format!("inspect container {id}"), error))?;
        match (EngineState::of(&inspected), started) {
            (EngineState::Created, Err(error)) => {
                self.destroy(&runtime_id).await?;
                Err(engine_error(format!("start container {id}"), error))
            }
            // It was started, or the engine keeps the reason why it was not.
            _ => Ok(inspected),
        }
    }

    /// Returns the image's user if the container's identity depends on it, else an empty string.
    async fn image_user(&self, config: &ContainerConfig) -> Result<String, Error> {
        let security = &config.security;
        let matters = security.run_as_non_root || security.run_as_group.is_some();
        if security.run_as_user.is_some() || !matters {
            return Ok(String::new());
        }
        let image = self.engine.client.inspect_image(&config.image).await;
        let image = image
            .map_err(|error| engine_error(format!("inspect image {}", config.image), error))?;
        let user = image.config.and_then(|config| config.user);
        Ok(user.unwrap_or_default())
    }

    /// Refuses a container that would be less confined than requested.
    fn verify(&self, config: &ContainerConfig, pod: &Key, image_user: &str) -> Result<(), Error> {
        let (security, id) = (&config.security, &config.id);
        let verified = security.verify_non_root(image_user, &pod_label(pod, &id.uid), &id.name);
        verified.map_err(Error::Config)?;
        let wanted = [
            (&security.seccomp_profile, "seccomp"),
            (&security.app_armor_profile, "apparmor"),
        ];
        let missing = |(wanted, name): &&(&Profile, &str)| {
            **wanted == Profile::RuntimeDefault && !self.engine.has_security_option(name)
        };
        match wanted.iter().find(missing) {
            Some((_, name)) => Err(Error::Config(format!(
                "cannot enforce the profile RuntimeDefault: the container engine runs without {name}"
            ))),
            None => Ok(()),
        }
    }

    /// Creates a container. If one of this name exists because the answer to an earlier call was lost, it is used if it
    /// was started, and recreated if not.
    async fn create(
        &self,
        identity: &Identity,
        body: ContainerCreateBody,
    ) -> Result<Created, Error> {
        let name = identity.name();
        let was_started = |there: &ContainerInspectResponse| {
            self::identity(there).as_ref() == Some(identity)
                && EngineState::of(there) != EngineState::Created
                && !identity.is_pause()
        };
        let created = self.create_named(&name, body, was_started).await;
        created.map_err(|error| engine_error(format!("create container {name}"), error))
    }

    /// Removes all containers and volumes of a Pod from the engine.
    pub(super) async fn remove_pod(&self, uid: &str) -> Result<(), Error> {
        let labels = [
            (CLUSTER, self.engine.cluster.as_str()),
            (NODE, &self.node),
            (UID, uid),
        ];
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filter(&labels))
            .build();
        let what = || format!("remove the containers and volumes of Pod {uid}");
        let left = self.engine.client.list_containers(Some(options)).await;
        let left = left.map_err(|error| engine_error(what(), error))?;
        for container in &left {
            self.destroy(container.id.as_deref().unwrap_or_default())
                .await?;
        }
        self.release_image_volumes(uid, &left).await;
        let removed = volume::remove(&self.engine.client, &labels).await;
        removed.map_err(|error| engine_error(what(), error))?;
        self.remove_cgroup(uid).await?;
        self.pauses.lock().remove(uid);
        self.incomplete.lock().remove(uid);
        self.images.forget(uid);
        Ok(())
    }
}
