//! Volumes of Pods and mounts of containers.

use setpoint_proto::core::{Container, Pod};
use setpoint_runtime::{Mount, Runtime, Volume};
use tracing::warn;

use super::error::runtime_message;
use super::{Error, Executor, placement};
use crate::pod::downward::Placement;
use crate::pod::env_file::{self, EnvFiles};
use crate::pod::environment;
use crate::pod::volumes::Sources;
use crate::pod::world::{AssignedPod, World};

impl<R: Runtime> Executor<R> {
    pub(super) async fn volumes(
        &self,
        world: &World,
        pod: &AssignedPod,
    ) -> Result<Vec<Volume>, Error> {
        let mounts = self.runtime.mounts_volumes();
        if !mounts && !R::RUNS_COMMANDS {
            return Ok(Vec::new());
        }
        let placement = placement(world, pod);
        let sources = self.sources(pod, &placement);
        let volumes = match mounts {
            true => sources.volumes().await,
            false => sources.account_files().await,
        };
        volumes.map_err(|error| self.mount_error(&pod.object, error))
    }

    pub(super) async fn mounts(
        &self,
        world: &World,
        pod: &AssignedPod,
        container: &Container,
        env: &[(String, String)],
    ) -> Result<Vec<Mount>, Error> {
        if !self.runtime.mounts_volumes() {
            return Ok(Vec::new());
        }
        let placement = placement(world, pod);
        let mounts = self.sources(pod, &placement).mounts(container, env).await;
        mounts.map_err(|error| self.container_error(pod, container, error))
    }

    /// Reads the files that the variables of a container refer to.
    pub(super) async fn env_files(&self, uid: &str, container: &Container) -> EnvFiles {
        let mut files = EnvFiles::new();
        for (volume, path) in env_file::references(container) {
            let read = self.runtime.read_file(uid, &volume, &path).await;
            let read = read.inspect_err(
                |error| warn!(uid, volume, path, %error, "cannot read a file of variables"),
            );
            files.insert((volume, path), read.ok());
        }
        files
    }

    /// Replaces the files of the volumes whose objects have changed. Where that fails, the files stay as they are.
    pub(super) async fn update_volumes(&self, world: &World, pod: &AssignedPod) {
        let placement = placement(world, pod);
        let uid = &pod.object.metadata.uid;
        let sources = self.sources(pod, &placement);
        let files = match self.runtime.mounts_volumes() {
            true => sources.files().await,
            false => sources.account_files().await,
        };
        let updated = match files {
            Ok(volumes) => {
                let changed = self.updates.changed(uid, volumes);
                let updated = self.runtime.update_volumes(uid, changed.clone()).await;
                if updated.is_ok() {
                    self.updates.record(uid, &changed);
                }
                updated.map_err(|error| {
                    let message = runtime_message(&error);
                    format!("the files of volumes could not be updated: {message}")
                })
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(message) = updated {
            self.events.failed_mount(&pod.object, &message);
        }
        self.updates.checked(&pod.object.metadata, world.instant);
    }

    fn sources<'a>(&'a self, pod: &'a AssignedPod, placement: &'a Placement) -> Sources<'a> {
        Sources {
            gateway: self.client_of(&pod.object),
            tokens: &self.tokens,
            host_paths: &self.host_paths,
            local_path: self.local_path.as_deref(),
            has_engine: R::RUNS_IMAGES,
            pod: &pod.object,
            placement,
        }
    }

    /// Records an Event and returns the error for a volume that cannot be set up. It affects the whole Pod, so no
    /// container is named.
    fn mount_error(&self, pod: &Pod, error: environment::Error) -> Error {
        match error {
            environment::Error::Gateway(error) => Error::Gateway(error),
            environment::Error::Config(waiting) => {
                self.events.failed_mount(pod, &waiting.message);
                let container = String::new();
                Error::Config { container, waiting }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;
    use std::time::Instant;

    use jiff::Timestamp;
    use setpoint_controller::Client;
    use setpoint_controller::client::Settings;
    use setpoint_model::Key;
    use setpoint_proto::core::{Volume as Declared, VolumeMount};

    use super::*;
    use crate::pod::api_server::{ApiServer, Place};
    use crate::pod::clients::NodeClients;
    use crate::pod::cluster_dns::Resolver;
    use crate::pod::events::Events;
    use crate::pod::fake::Fake;
    use crate::pod::volumes::{Tokens, Updates};
    use crate::pod::world::{Runs, WaitingReason};
    use setpoint_runtime::LogLimits;

    fn executor() -> Executor<Fake> {
        let settings = Settings {
            address: "http://127.0.0.1:1".into(),
            ..Settings::default()
        };
        Executor {
            runtime: Fake::new(),
            clients: NodeClients::new(Client::connect(&settings, "test").unwrap(), 1),
            events: Events::new(None),
            probes: Arc::default(),
            hooks: Arc::default(),
            wake: Arc::new(|_: &Key| {}),
            tokens: Tokens::default(),
            updates: Updates::default(),
            host_paths: Vec::new(),
            local_path: None,
            log: LogLimits::default(),
            api: ApiServer::new(
                Place::parse("10.0.0.1:6443").unwrap(),
                Arc::new(|_| unreachable!("it is an address")),
            ),
            dns: Resolver::new(
                Vec::new(),
                String::new(),
                Arc::new(|_| unreachable!("there are none")),
            ),
        }
    }

    fn world(object: Pod) -> World {
        World {
            now: Timestamp::UNIX_EPOCH,
            instant: Instant::now(),
            pod: Some(AssignedPod {
                object,
                is_static: false,
                resize: None,
                host_ip: String::new(),
                allocatable: Arc::default(),
                admission: Ok(None),
                runtime: "fake",
                scheme: "fake".to_owned(),
                runs: Runs::Images,
                mounts: true,
            }),
            sandboxes: Vec::new(),
            waiting_reasons: BTreeMap::new(),
            resize_error: None,
            probes: BTreeMap::new(),
            post_starts: BTreeMap::new(),
            held: BTreeSet::new(),
            ending: None,
            volumes_checked: None,
        }
    }

    /// Checks E11.
    #[test]
    fn an_error_says_which_container_cannot_be_started_or_that_none_can() {
        let error = |container: &str| Error::Config {
            container: container.into(),
            waiting: WaitingReason::config("no such path".to_owned()),
        };
        let message = error("web").to_string();
        assert_eq!(message, "container web cannot be started: no such path");
        let message = error("").to_string();
        assert_eq!(message, "no container can be started: no such path");
    }

    /// Checks K14: the container waits, not its Pod.
    #[tokio::test]
    async fn a_container_whose_sub_path_leaves_its_volume_cannot_be_configured() {
        let name = "scratch".to_owned();
        let wanted = VolumeMount {
            name: name.clone(),
            sub_path_expr: "$(FOLDER)".into(),
            ..VolumeMount::default()
        };
        let container = Container {
            name: "main".into(),
            volume_mounts: vec![wanted],
            ..Container::default()
        };
        let mut pod = Pod::default();
        pod.spec.volumes.push(Declared {
            name,
            ..Declared::default()
        });
        let (executor, world) = (executor(), world(pod));
        let pod = world.pod.as_ref().unwrap();
        for folder in ["/tmp", "a/../.."] {
            let env = [("FOLDER".to_owned(), folder.to_owned())];
            let mounts = executor.mounts(&world, pod, &container, &env).await;
            let Err(Error::Config { container, waiting }) = mounts else {
                panic!("{mounts:?}");
            };
            assert_eq!(
                (container.as_str(), waiting.reason.as_ref()),
                ("main", "CreateContainerConfigError")
            );
        }
    }
}
