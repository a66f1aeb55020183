//! Implements [`Runtime`] for [`Docker`].

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use setpoint_model::Key;
use setpoint_proto::core::{ContainerImage, ResourceRequirements};

use super::{Docker, Shared, engine_error, read_log, volume};
use crate::image_records::familiar;
use crate::streams::dial;
use crate::{
    Connection, Container, ContainerConfig, ContainerId, DiskUsage, Error, Hosts, ImageOrigin,
    Inputs, Log, LogOptions, Outputs, PodResources, Reading, Runtime, Sandbox, SandboxConfig,
    State, Streams, Volume,
};

impl Runtime for Docker {
    const NAME: &'static str = "docker";
    const RUNS_COMMANDS: bool = true;
    const RUNS_IMAGES: bool = true;

    async fn images(&self) -> Vec<ContainerImage> {
        self.shared.images.list().await
    }

    async fn remove_images(&self, bytes: u64, min_age: Duration) -> u64 {
        let mut in_use = self.shared.table.lock().images();
        in_use.insert(familiar(&self.shared.pause_image));
        let images = &self.shared.images;
        images.remove_unused(&in_use, bytes, min_age).await
    }

    async fn disk_usage(&self, pods: HashSet<String>) -> DiskUsage {
        self.shared.disk_usage(pods).await
    }

    /// The engine resolves links within the pause container.
    async fn read_file(&self, uid: &str, volume: &str, path: &str) -> Result<Vec<u8>, Error> {
        let pause = self.shared.pauses.lock().get(uid).cloned();
        let pause = pause.ok_or_else(|| Error::Unknown(uid.to_owned()))?;
        let path = format!("{}/{}", volume::path(volume), path.trim_start_matches('/'));
        let read = self.shared.read_file(&pause.runtime_id, &path).await;
        read.map_err(|error| engine_error(format!("read {path}"), error))
    }

    fn mounts_volumes(&self) -> bool {
        true
    }

    fn sandboxes(&self, pod: &Key) -> Vec<Sandbox> {
        self.shared.table.lock().sandboxes_of(pod)
    }

    fn state(&self, id: &ContainerId) -> Option<State> {
        self.shared.table.lock().state(id)
    }

    fn pods(&self) -> Vec<Key> {
        self.shared.table.lock().pods()
    }

    async fn run_sandbox(&self, config: SandboxConfig) -> Result<(), Error> {
        self.shared.run_pod_sandbox(config).await
    }

    async fn update_volumes(&self, uid: &str, volumes: Vec<Volume>) -> Result<(), Error> {
        self.shared.update_volumes(uid, volumes).await
    }

    async fn update_hosts(&self, uid: &str, hostname: &str, hosts: &Hosts) -> Result<(), Error> {
        self.shared.update_hosts(uid, hostname, hosts).await
    }

    async fn start(&self, config: ContainerConfig) -> Result<ImageOrigin, Error> {
        let new = {
            let mut table = self.shared.table.lock();
            table.insert(Container::starting(&config))?
        };
        if !new {
            return Ok(ImageOrigin::Present);
        }
        let launched = Box::pin(Shared::launch(&self.shared, config.clone())).await;
        match &launched {
            Ok((container, _)) => self.shared.update(container).await,
            Err(_) => self.shared.table.lock().discard(&config.id),
        }
        launched.map(|(_, origin)| origin)
    }

    async fn resize(
        &self,
        id: &ContainerId,
        resources: &ResourceRequirements,
    ) -> Result<(), Error> {
        crate::resize::resize(&*self.shared, id, resources).await
    }

    async fn resize_pod(&self, uid: &str, resources: PodResources) -> Result<bool, Error> {
        crate::resize::resize_pod(&*self.shared, uid, resources).await
    }

    fn bounds_pods(&self) -> bool {
        self.shared.cgroups().is_some()
    }

    async fn stop(&self, id: &ContainerId, grace: Duration) -> Result<(), Error> {
        Shared::stop(&self.shared, id, grace).await
    }

    async fn log(&self, id: &ContainerId, options: &LogOptions) -> Result<Log, Error> {
        let runtime_id = self.shared.table.lock().container(id)?.runtime_id.clone();
        Ok(read_log(&self.shared.engine, runtime_id, options))
    }

    async fn exec(
        &self,
        id: &ContainerId,
        command: &[String],
        streams: Streams,
        input: Inputs,
    ) -> Result<Outputs, Error> {
        Shared::exec(&self.shared, id, command, streams, input).await
    }

    async fn attach(
        &self,
        id: &ContainerId,
        streams: Streams,
        input: Inputs,
    ) -> Result<Outputs, Error> {
        self.shared.attach(id, streams, input).await
    }

    async fn connect(&self, uid: &str, port: u16) -> Result<Connection, Error> {
        let ip = self.shared.table.lock().sandbox(uid)?.config.ip;
        match &self.shared.engine.helper {
            Some(program) => self.shared.dial_within(program, uid, ip, port).await,
            None => dial((ip, port).into()).await,
        }
    }

    async fn readings(&self) -> HashMap<ContainerId, Reading> {
        self.shared.readings().await
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), Error> {
        let removable = self.shared.table.lock().removable(id)?;
        if let Some(container) = removable {
            // It is known until the engine has removed it.
            self.shared.destroy(&container.runtime_id).await?;
        }
        self.shared.table.lock().remove(id)
    }

    async fn remove_sandbox(&self, uid: &str) -> Result<(), Error> {
        if let Ok(sandbox) = self.shared.table.lock().sandbox(uid)
            && let Some(container) = sandbox.alive().next()
        {
            return Err(Error::Running(container.id.to_string()));
        }
        self.shared.remove_pod(uid).await?;
        self.shared.table.lock().remove_sandbox(uid)
    }
}
