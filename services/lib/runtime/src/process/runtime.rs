//! Implements [`Runtime`] for [`Processes`].

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::Signal;
use setpoint_host::private;
use setpoint_model::Key;
use setpoint_model::time::after;
use setpoint_proto::core::ResourceRequirements;
use setpoint_task::catch_panic;
use tokio::time::timeout;

use super::connect::dial_within;
use super::{Network, Processes, folder, state_error, usage};
use crate::streams::dial;
use crate::volumes::remove_dir;
use crate::{
    Connection, Container, ContainerConfig, ContainerId, DiskUsage, Error, Hosts, ImageOrigin,
    Inputs, Log, LogOptions, Obstacle, Outputs, Reading, Runtime, Sandbox, SandboxConfig, State,
    Streams, Volume, log_file,
};

impl Runtime for Processes {
    const NAME: &'static str = "process";
    const RUNS_COMMANDS: bool = true;
    const RUNS_IMAGES: bool = false;

    async fn read_file(&self, uid: &str, volume: &str, path: &str) -> Result<Vec<u8>, Error> {
        let read = self.shared.volumes.read_file(uid, volume, path);
        read.map_err(|source| state_error(format!("volume {volume:?} of Pod {uid}"), source))
    }

    fn mounts_volumes(&self) -> bool {
        self.shared.mounts
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
        let network = self.shared.network.as_ref();
        let ready = network.map_or(Ok(()), Network::ready);
        ready.map_err(Obstacle::Network)
    }

    fn has_pod_networks(&self) -> bool {
        self.shared.network.is_some()
    }

    async fn set_pod_range(&self, range: &str) -> Result<(), Error> {
        self.make_network(range).await
    }

    async fn run_sandbox(&self, config: SandboxConfig) -> Result<(), Error> {
        let folder = self.sandbox_folder(&config.uid);
        private::create_dir_all(&folder)
            .and_then(|()| fs::create_dir_all(folder::work_dir(&folder)))
            .and_then(|()| self.shared.volumes.create(&config.uid, &config.volumes))
            .and_then(|()| self.write_hosts(&config))
            .and_then(|()| folder::write(&folder.join("boot.json"), &self.shared.boot_id))
            .and_then(|()| folder::write(&folder.join("sandbox.json"), &config))
            .map_err(|source| state_error(&config.uid, source))?;
        self.connect_to_network(&config).await?;
        let (uid, ip) = (config.uid.clone(), config.ip);
        let mut table = self.shared.table.lock();
        table.add(config);
        table.set_sandbox_id(&uid, self.shared.boot_id.clone());
        table.set_ready(&uid, Some(ip));
        Ok(())
    }

    async fn update_volumes(&self, uid: &str, volumes: Vec<Volume>) -> Result<(), Error> {
        for volume in &volumes {
            let published = self.shared.volumes.publish(uid, volume);
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
        let written = self.write_hosts(&config);
        written.map_err(|source| state_error(format!("the hosts file of Pod {uid}"), source))
    }

    fn unmounted_folder(&self, uid: &str, volume: &str) -> Option<PathBuf> {
        let folder = || self.shared.volumes.folder(uid, volume);
        (!self.shared.mounts).then(folder).flatten()
    }

    async fn start(&self, config: ContainerConfig) -> Result<ImageOrigin, Error> {
        self.verify(&config)?;
        let binds = self.binds(&config)?;
        let new = self
            .shared
            .table
            .lock()
            .insert(Container::starting(&config))?;
        if !new {
            return Ok(ImageOrigin::Unused);
        }
        let (id, folder) = (&config.id, self.folder(&config.id));
        if let Err(source) = folder.create(&config, &binds) {
            return Err(self.not_created(id, &folder, source));
        }
        match self.launch(&folder, &config).await {
            Ok(Some(shim)) => self
                .adopt(id, &folder, Some(shim))
                .map(|()| ImageOrigin::Unused)
                .map_err(|source| state_error(id, source)),
            failed => {
                // Claims the directory in place of the shim, so that a late shim cannot start a container that counts
                // as failed.
                self.abandon_start(id, &folder);
                failed.map_err(|source| state_error(id, source))?;
                Err(Error::Shim(id.to_string()))
            }
        }
    }

    /// Records the requests and limits; the process has no limits.
    async fn resize(
        &self,
        id: &ContainerId,
        resources: &ResourceRequirements,
    ) -> Result<(), Error> {
        self.shared.table.lock().set_resources(id, resources)?;
        let recorded = self.folder(id).set_resources(resources);
        recorded.map_err(|source| state_error(id, source))
    }

    async fn stop(&self, id: &ContainerId, grace: Duration) -> Result<(), Error> {
        let deadline = after(Timestamp::now(), grace);
        let Some(first) = self.set_stop_deadline(id, deadline)? else {
            return Ok(());
        };
        let Some(shim) = self.shared.shims.lock().get(id).cloned() else {
            return Ok(());
        };
        if first {
            shim.signal(Signal::TERM);
        }
        if grace.is_zero() {
            shim.signal(Signal::USR1);
            return Ok(());
        }
        tokio::spawn(catch_panic("stop", async move {
            if timeout(grace, shim.gone()).await.is_err() {
                shim.signal(Signal::USR1);
            }
        }));
        Ok(())
    }

    async fn log(&self, id: &ContainerId, options: &LogOptions) -> Result<Log, Error> {
        self.shared.table.lock().container(id)?;
        if options.timestamps || options.since.is_some() {
            let message = "the process runtime does not record timestamps of log lines";
            return Err(Error::Unsupported(message.to_owned()));
        }
        let path = self.folder(id).path().join("log");
        let (tail, follow) = (options.tail, options.follow);
        log_file::read(&id.to_string(), path, tail, follow, self.has_exited(id))
    }

    async fn exec(
        &self,
        id: &ContainerId,
        command: &[String],
        streams: Streams,
        input: Inputs,
    ) -> Result<Outputs, Error> {
        self.run_command(id, command, streams, input)
    }

    async fn attach(&self, id: &ContainerId, _: Streams, _: Inputs) -> Result<Outputs, Error> {
        self.follow_output(id)
    }

    async fn connect(&self, uid: &str, port: u16) -> Result<Connection, Error> {
        let ip = self.shared.table.lock().sandbox(uid)?.config.ip;
        dial((ip, port).into()).await
    }

    async fn connect_loopback(&self, uid: &str, port: u16) -> Result<Connection, Error> {
        match self.namespace_of(uid)? {
            Some(namespace) => dial_within(&namespace, port).await,
            None => self.connect(uid, port).await,
        }
    }

    async fn readings(&self) -> HashMap<ContainerId, Reading> {
        let running = self.shared.shims.lock().keys().cloned().collect();
        let read = tokio::task::spawn_blocking(|| usage::readings(running));
        read.await.unwrap_or_default()
    }

    async fn disk_usage(&self, pods: HashSet<String>) -> DiskUsage {
        let shared = Arc::clone(&self.shared);
        let read = tokio::task::spawn_blocking(move || {
            let containers = shared.table.lock().containers();
            let ids = containers.into_iter().map(|container| container.id);
            let ids = ids.filter(|id| pods.contains(&id.uid)).collect();
            usage::disk_usage(&shared.pods, &shared.volumes, ids)
        });
        read.await.unwrap_or_default()
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), Error> {
        self.shared.table.lock().remove(id)?;
        remove_dir(self.folder(id).path()).map_err(|source| state_error(id, source))
    }

    async fn remove_sandbox(&self, uid: &str) -> Result<(), Error> {
        let config = self.shared.table.lock().removable_sandbox(uid)?;
        if let Some(config) = config {
            self.disconnect(&config).await?;
        }
        self.shared.table.lock().remove_sandbox(uid)?;
        let removed = self.shared.volumes.remove(uid);
        removed.map_err(|source| state_error(uid, source))?;
        remove_dir(&self.sandbox_folder(uid)).map_err(|source| state_error(uid, source))
    }
}
