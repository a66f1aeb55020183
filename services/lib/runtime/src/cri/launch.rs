//! Creates and starts containers.

use k8s_cri::v1::{
    Container as Listed, ContainerFilter, ContainerState, CreateContainerRequest, Image, ImageSpec,
    ListContainersRequest, Mount, StartContainerRequest,
};
use setpoint_model::Key;
use tonic::Status;

use super::client::{call, failed};
use super::create::{self, Parts, Surroundings};
use super::files::log_path;
use super::{Shared, abilities, identity, state_error};
use crate::sub_path::Bound;
use crate::{ContainerConfig, Error, ImageOrigin, Processes, SandboxConfig};

impl Shared {
    /// Creates and starts a container, and returns the origin of its image. One that an earlier call has started, whose
    /// answer was lost, is taken over.
    pub(super) async fn launch(&self, config: &ContainerConfig) -> Result<ImageOrigin, Error> {
        let id = &config.id;
        let unknown = || Error::Unknown(id.uid.clone());
        let sandbox = self.sandbox_config(&id.uid).ok_or_else(unknown)?;
        let sandbox_id = self.sandboxes.lock().get(&id.uid).cloned();
        let sandbox_id = sandbox_id.ok_or_else(unknown)?.runtime_id;
        let pod = sandbox.pod();
        abilities::check(&self.service, &sandbox, config)?;
        let key = (id.uid.clone(), id.name.clone());
        let (image, keyring) = (&config.image, &config.keyring);
        let origin = self.images.ensure(&pod, key, image, config.pull, keyring);
        let origin = origin.await?;
        let what = format!("create container {}", id.name);
        if let Some(earlier) = self.earlier(config).await.map_err(failed(&what))? {
            self.refresh(&earlier).await.map_err(failed(&what))?;
            return Ok(origin);
        }
        let image = self.image(&config.image).await?;
        let image_user = abilities::verified_user(config, &pod, &image)?;
        let created = self.create(config, &sandbox, &sandbox_id, image, image_user);
        let (runtime_id, _bound) = created.await?;
        let request = StartContainerRequest {
            container_id: runtime_id.clone(),
        };
        let started = call(self.service.runtime().start_container(request)).await;
        let listed = self.listed(&runtime_id).await.map_err(failed(&what))?;
        match (listed, started) {
            // The runtime keeps the reason why it has not started.
            (Some(listed), _) if listed.state() != ContainerState::ContainerCreated => {
                self.refresh(&listed).await.map_err(failed(what))?;
                Ok(origin)
            }
            (_, Err(status)) => {
                self.destroy(&runtime_id).await?;
                Err(failed(format!("start container {}", id.name))(status))
            }
            (_, Ok(_)) => Err(Error::NotRunning(id.name.clone())),
        }
    }

    /// Returns the same attempt at a container if it was started before. Removes it if it was only created, and if the
    /// runtime does not know: it was killed while it created the container.
    async fn earlier(&self, config: &ContainerConfig) -> Result<Option<Listed>, Status> {
        let of_pod = identity::of_pod(&self.node, &config.id.uid);
        let listed = self.list_containers(ContainerFilter {
            label_selector: of_pod,
            ..ContainerFilter::default()
        });
        let is_same = |listed: &Listed| {
            let kept = identity::container(&listed.annotations);
            kept.is_some_and(|kept| kept.id == config.id)
        };
        let Some(earlier) = listed.await?.into_iter().find(is_same) else {
            return Ok(None);
        };
        match earlier.state() {
            ContainerState::ContainerRunning | ContainerState::ContainerExited => {
                return Ok(Some(earlier));
            }
            ContainerState::ContainerCreated | ContainerState::ContainerUnknown => {}
        }
        let request = k8s_cri::v1::RemoveContainerRequest {
            container_id: earlier.id,
        };
        call(self.service.runtime().remove_container(request)).await?;
        Ok(None)
    }

    async fn listed(&self, runtime_id: &str) -> Result<Option<Listed>, Status> {
        let filter = ContainerFilter {
            id: runtime_id.to_owned(),
            ..ContainerFilter::default()
        };
        Ok(self.list_containers(filter).await?.into_iter().next())
    }

    /// Returns the containers that a filter selects.
    pub(super) async fn list_containers(
        &self,
        filter: ContainerFilter,
    ) -> Result<Vec<Listed>, Status> {
        let request = ListContainersRequest {
            filter: Some(filter),
        };
        let answer = call(self.service.runtime().list_containers(request)).await?;
        Ok(answer.containers)
    }

    /// Creates a container. What is returned besides its id is needed until it has started.
    async fn create(
        &self,
        config: &ContainerConfig,
        sandbox: &SandboxConfig,
        sandbox_id: &str,
        image: Image,
        image_user: Option<i64>,
    ) -> Result<(String, Vec<Bound>), Error> {
        let (id, pod) = (&config.id, sandbox.pod());
        let kept = config.without_secrets();
        let annotations = identity::annotations(&kept);
        let annotations =
            annotations.map_err(|error| state_error(id, std::io::Error::other(error)))?;
        let prepared = self.files.create_log_folder(sandbox, id);
        let binds = prepared.and_then(|()| self.files.binds(config, sandbox.host_network));
        let binds = binds.map_err(|source| state_error(id, source))?;
        let recurses = self.service.features.recurses(&sandbox.runtime_handler);
        let mounts = self.files.mounts(id, &binds, recurses);
        let (mut mounts, bound) = mounts.map_err(Error::Config)?;
        mounts.extend(self.image_mounts(&pod, config).await?);
        let parts = Parts {
            sandbox,
            seccomp_root: &self.seccomp_root,
            image: ImageSpec {
                image: image.id,
                user_specified_image: config.image.clone(),
                ..ImageSpec::default()
            },
            image_user,
            labels: identity::of_container(&self.node, &pod, config),
            annotations,
            mounts,
            log_path: log_path(id),
            target: self.target(&config.processes)?,
        };
        let request = CreateContainerRequest {
            pod_sandbox_id: sandbox_id.to_owned(),
            config: Some(create::container(config, parts)),
            sandbox_config: Some(self.sandbox_of_container(sandbox, config)),
        };
        let created = call(self.service.runtime().create_container(request)).await;
        let created = created.map_err(failed(format!("create container {}", id.name)))?;
        self.configs.lock().insert(id.clone(), kept);
        Ok((created.container_id, bound))
    }

    /// Pulls the images that a container mounts, and returns the mounts.
    async fn image_mounts(&self, pod: &Key, config: &ContainerConfig) -> Result<Vec<Mount>, Error> {
        let mut mounts = Vec::new();
        for mount in &config.mounts {
            let Some(image) = &mount.image else {
                continue;
            };
            // No container has such a name.
            let key = (config.id.uid.clone(), format!("volume/{}", mount.volume));
            let (reference, keyring) = (&image.reference, &config.keyring);
            let ensured = self.images.ensure(pod, key, reference, image.pull, keyring);
            ensured.await?;
            let spec = ImageSpec {
                image: self.image(reference).await?.id,
                user_specified_image: reference.clone(),
                ..ImageSpec::default()
            };
            mounts.push(Mount {
                container_path: mount.path.clone(),
                image: Some(spec),
                readonly: true,
                ..Mount::default()
            });
        }
        Ok(mounts)
    }

    /// Returns the configuration of a sandbox as a container needs it. A privileged container may have been added after
    /// the sandbox was made, as ephemeral ones are.
    fn sandbox_of_container(
        &self,
        sandbox: &SandboxConfig,
        container: &ContainerConfig,
    ) -> k8s_cri::v1::PodSandboxConfig {
        let sandbox = &SandboxConfig {
            privileged: sandbox.privileged || container.security.privileged,
            ..sandbox.clone()
        };
        let attempt = self.sandboxes.lock().get(&sandbox.uid).cloned();
        let surroundings = Surroundings {
            attempt: attempt.map_or(0, |attempt| attempt.number),
            labels: identity::of_sandbox(&self.node, &sandbox.pod(), &sandbox.uid),
            annotations: identity::Pairs::new(),
            log_directory: self.files.logs_of(sandbox).display().to_string(),
            cgroup_parent: self.cgroup_parent(sandbox),
        };
        create::sandbox(sandbox, surroundings)
    }

    /// Returns the runtime's id of the container whose processes a container shares; empty if it names none.
    fn target(&self, processes: &Processes) -> Result<String, Error> {
        match processes {
            Processes::Own | Processes::OfPod => Ok(String::new()),
            Processes::Of(target) => Ok(self.table.lock().running(target)?.runtime_id.clone()),
        }
    }
}
