//! Implements [`Runtime`] for [`Cri`].

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use setpoint_model::Key;
use setpoint_proto::core::{ContainerImage, ResourceRequirements};

use super::{Cri, Shared, log, sandboxes, state_error};
use crate::streams::dial;
use crate::{
    Connection, Container, ContainerConfig, ContainerId, DiskUsage, Error, Hosts, ImageOrigin,
    Inputs, Log, LogOptions, Obstacle, Outputs, PodResources, Reading, Runtime, Sandbox,
    SandboxConfig, State, Streams, Volume, log_file,
};

impl Runtime for Cri {
    const NAME: &'static str = "cri";
    const RUNS_COMMANDS: bool = true;
    const RUNS_IMAGES: bool = true;

    async fn images(&self) -> Vec<ContainerImage> {
        self.shared.images.list().await
    }

    async fn remove_images(&self, bytes: u64, min_age: Duration) -> u64 {
        let in_use = self.shared.table.lock().images();
        let images = &self.shared.images;
        images.remove_unused(&in_use, bytes, min_age).await
    }

    async fn disk_usage(&self, pods: HashSet<String>) -> DiskUsage {
        Shared::disk_usage(&self.shared, pods).await
    }

    async fn read_file(&self, uid: &str, volume: &str, path: &str) -> Result<Vec<u8>, Error> {
        let read = self.shared.files.volumes.read_file(uid, volume, path);
        read.map_err(|source| state_error(format!("volume {volume:?} of Pod {uid}"), source))
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

    fn network_ready(&self) -> Result<(), Obstacle> {
        let unconfigured = self.shared.unconfigured.lock().clone();
        let obstacle = unconfigured.or_else(|| self.shared.obstacle.lock().clone());
        obstacle.map_or(Ok(()), Err)
    }

    async fn set_pod_range(&self, range: &str) -> Result<(), Error> {
        let Some(cni) = &self.shared.cni else {
            return Ok(());
        };
        let written = cni.write(range);
        let obstacle = written.as_ref().err();
        *self.shared.unconfigured.lock() =
            obstacle.map(|error| Obstacle::Network(error.to_string()));
        written.map_err(|source| state_error("the configuration of the network", source))?;
        // What the runtime said before is not so any more.
        self.shared.check().await;
        Ok(())
    }

    async fn run_sandbox(&self, config: SandboxConfig) -> Result<(), Error> {
        self.shared.run_pod_sandbox(config).await
    }

    async fn update_volumes(&self, uid: &str, volumes: Vec<Volume>) -> Result<(), Error> {
        for volume in &volumes {
            let published = self.shared.files.volumes.publish(uid, volume);
            let what = || format!("volume {:?} of Pod {uid}", volume.name);
            published.map_err(|source| state_error(what(), source))?;
        }
        Ok(())
    }

    async fn update_hosts(&self, uid: &str, hostname: &str, hosts: &Hosts) -> Result<(), Error> {
        let config = self.shared.table.lock().sandbox(uid)?.config.clone();
        let config = SandboxConfig {
            hostname: hostname.to_owned(),
            hosts: hosts.clone(),
            ..config
        };
        let written = self.shared.files.write_hosts(&config);
        written.map_err(|source| state_error(format!("the hosts file of Pod {uid}"), source))
    }

    async fn start(&self, config: ContainerConfig) -> Result<ImageOrigin, Error> {
        let new = {
            let mut table = self.shared.table.lock();
            table.insert(Container::starting(&config))?
        };
        if !new {
            return Ok(ImageOrigin::Present);
        }
        let launched = Box::pin(self.shared.launch(&config)).await;
        if launched.is_err() {
            self.shared.table.lock().discard(&config.id);
        }
        launched
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
        self.shared.cgroups.is_some()
    }

    async fn stop(&self, id: &ContainerId, grace: Duration) -> Result<(), Error> {
        Shared::stop(&self.shared, id, grace)
    }

    async fn log(&self, id: &ContainerId, options: &LogOptions) -> Result<Log, Error> {
        self.shared.table.lock().container(id)?;
        let sandbox = self.shared.sandbox_config(&id.uid);
        let sandbox = sandbox.ok_or_else(|| Error::Unknown(id.uid.clone()))?;
        let path = self.shared.files.log(&sandbox, id);
        let has_exited = Shared::has_exited(&self.shared, id);
        let (tail, follow) = (options.tail, options.follow);
        let log = log_file::read(&id.to_string(), path, tail, follow, has_exited)?;
        Ok(log::decoded(log, options))
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
        dial(sandboxes::address(ip, port)?).await
    }

    async fn connect_loopback(&self, uid: &str, port: u16) -> Result<Connection, Error> {
        self.shared.forward_port(uid, port).await
    }

    async fn readings(&self) -> HashMap<ContainerId, Reading> {
        self.shared.readings().await
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), Error> {
        let removable = self.shared.table.lock().removable(id)?;
        let Some(container) = removable else {
            return Ok(());
        };
        self.shared.destroy(&container.runtime_id).await?;
        if let Some(sandbox) = self.shared.sandbox_config(&id.uid) {
            let removed = self.shared.files.remove_container(&sandbox, id);
            removed.map_err(|source| state_error(id, source))?;
        }
        self.shared.configs.lock().remove(id);
        self.shared.table.lock().remove(id)
    }

    async fn remove_sandbox(&self, uid: &str) -> Result<(), Error> {
        self.shared.remove_pod(uid).await
    }
}
