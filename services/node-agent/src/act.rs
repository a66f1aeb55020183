//! Carries out one action: one call to the runtime or to the gateway.

use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::client::Preconditions;
use setpoint_controller::{Client, Receipt};
use setpoint_model::Key;
use setpoint_proto::core::{Container, Pod, PodStatus};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Reason};

use crate::downward::Place;
use crate::environment::{self, environment, hostname, words};
use crate::fields::{self, Column};
use crate::plan::Action;
use crate::request;
use crate::runtime::{
    self, ContainerConfig, ContainerId, LogLimits, Mount, Runtime, SandboxConfig, Volume,
};
use crate::status::status;
use crate::tell::Tell;
use crate::volumes;
use crate::world::{Bound, Trouble, World};

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The gateway refused, or did not answer.
    #[error("the gateway refused")]
    Gateway(#[from] ApiError),
    /// The runtime could not.
    #[error("the runtime could not")]
    Runtime(#[from] runtime::Error),
    /// A container cannot be started as its Pod describes it.
    #[error("container {container} cannot be started: {}", .trouble.message)]
    Config {
        /// Which container.
        container: String,
        /// Why not.
        trouble: Trouble,
    },
}

/// The hands of the agent.
pub struct Hands<R> {
    /// Runs containers.
    pub runtime: R,
    /// Writes objects.
    pub gateway: Client,
    /// Tells people.
    pub tell: Tell,
    /// How much of what containers write is kept.
    pub log: LogLimits,
}

impl<R: Runtime> Hands<R> {
    /// Does it; gives the receipt if something was written at the gateway.
    ///
    /// # Errors
    /// When it could not be done; the next round may try again.
    pub async fn act(&self, world: &World, action: &Action) -> Result<Receipt, Error> {
        let pod = world.pod.as_ref();
        match (action, pod) {
            (Action::RunSandbox { ip }, Some(pod)) => {
                let meta = &pod.object.metadata;
                let config = SandboxConfig {
                    namespace: meta.namespace.clone(),
                    name: meta.name.clone(),
                    uid: meta.uid.clone(),
                    ip: *ip,
                    hostname: hostname(&pod.object).to_owned(),
                    volumes: self.volumes(world, pod).await?,
                };
                self.room(&pod.object, self.runtime.run_sandbox(config).await)?;
                if let (Some(column), None) = (Column::of::<R>(), world.sandbox()) {
                    let ignored = fields::ignored(&pod.object.spec, column);
                    self.tell.unsupported(&pod.object, &ignored);
                }
            }
            (
                Action::Start {
                    name,
                    attempt,
                    backoff,
                },
                Some(pod),
            ) => {
                self.start(world, pod, name, *attempt, *backoff).await?;
            }
            (Action::Stop { id, grace }, pod) => {
                if let Some(pod) = pod {
                    self.tell.stopping(&pod.object, &id.name);
                }
                self.runtime.stop(id, *grace).await?;
            }
            (Action::Remove(id), _) => self.runtime.remove(id).await?,
            (Action::RemoveSandbox(uid), _) => self.runtime.remove_sandbox(uid).await?,
            (Action::Report, Some(pod)) => return Ok(self.report(world, pod).await?),
            (Action::Delete, Some(pod)) => return Ok(self.delete(&pod.object).await?),
            (_, None) => {}
        }
        Ok(Receipt::none())
    }

    async fn start(
        &self,
        world: &World,
        pod: &Bound,
        name: &str,
        attempt: u32,
        backoff: Duration,
    ) -> Result<(), Error> {
        let spec = &pod.object.spec;
        let mut all = spec.init_containers.iter().chain(&spec.containers);
        let Some(container) = all.find(|container| container.name == name) else {
            return Ok(());
        };
        let refused = Column::of::<R>().and_then(|column| fields::refused(spec, name, column));
        if let Some(field) = refused {
            let message = format!("{field} is not supported on this node");
            return Err(self.misconfigured(pod, container, message));
        }
        let env = self.environment(world, pod, container).await?;
        let config = ContainerConfig {
            id: ContainerId {
                uid: pod.object.metadata.uid.clone(),
                name: name.to_owned(),
                attempt,
            },
            image: container.image.clone(),
            command: words(&container.command, &env),
            args: words(&container.args, &env),
            working_dir: container.working_dir.clone(),
            backoff,
            pull: request::pull(container),
            limits: request::limits(container),
            security: request::security(spec, container),
            log: self.log,
            mounts: self.mounts(world, pod, container, &env).await?,
            env,
        };
        let placeholder = config.command.is_empty() && R::RUNS_COMMANDS && !R::RUNS_IMAGES;
        let origin = match self.runtime.start(config).await {
            Err(runtime::Error::Image {
                reason,
                message,
                pulling,
            }) => {
                let trouble = Trouble { reason, message };
                self.tell
                    .without_image(&pod.object, container, &trouble, pulling);
                let container = name.to_owned();
                return Err(Error::Config { container, trouble });
            }
            Err(runtime::Error::Config(message)) => {
                return Err(self.misconfigured(pod, container, message));
            }
            started => started?,
        };
        self.tell.with_image(&pod.object, container, origin);
        self.tell
            .started(&pod.object, container, attempt, placeholder);
        Ok(())
    }

    /// A container that cannot be started as it is configured.
    fn misconfigured(&self, pod: &Bound, container: &Container, message: String) -> Error {
        self.tell.failed(&pod.object, container, &message);
        Error::Config {
            container: container.name.clone(),
            trouble: Trouble::config(message),
        }
    }

    async fn volumes(&self, world: &World, pod: &Bound) -> Result<Vec<Volume>, Error> {
        if !R::RUNS_IMAGES {
            return Ok(Vec::new());
        }
        let volumes = volumes::volumes(&self.gateway, &pod.object, &place(world, pod)).await;
        volumes.map_err(|error| self.unmounted(&pod.object, error))
    }

    async fn mounts(
        &self,
        world: &World,
        pod: &Bound,
        container: &Container,
        env: &[(String, String)],
    ) -> Result<Vec<Mount>, Error> {
        if !R::RUNS_IMAGES {
            return Ok(Vec::new());
        }
        let place = place(world, pod);
        let mounts = volumes::mounts(&self.gateway, &pod.object, &place, container, env).await;
        mounts.map_err(|error| self.unmounted(&pod.object, error))
    }

    /// A volume that cannot be had is the whole Pod's trouble.
    fn unmounted(&self, pod: &Pod, error: environment::Error) -> Error {
        match error {
            environment::Error::Gateway(error) => Error::Gateway(error),
            environment::Error::Config(trouble) => {
                self.tell.failed_mount(pod, &trouble.message);
                let container = String::new();
                Error::Config { container, trouble }
            }
        }
    }

    fn room(&self, pod: &Pod, made: Result<(), runtime::Error>) -> Result<(), Error> {
        match made {
            Err(runtime::Error::Image {
                reason, message, ..
            }) => {
                self.tell.no_sandbox(pod, &message);
                let (container, trouble) = (String::new(), Trouble { reason, message });
                Err(Error::Config { container, trouble })
            }
            made => Ok(made?),
        }
    }

    async fn environment(
        &self,
        world: &World,
        pod: &Bound,
        container: &Container,
    ) -> Result<Vec<(String, String)>, Error> {
        if !R::RUNS_COMMANDS {
            return Ok(Vec::new());
        }
        let (place, path) = (place(world, pod), !R::RUNS_IMAGES);
        let env = environment(&self.gateway, &pod.object, container, &place, path).await;
        env.map_err(|error| match error {
            environment::Error::Gateway(error) => Error::Gateway(error),
            environment::Error::Config(trouble) => {
                self.tell.failed(&pod.object, container, &trouble.message);
                let container = container.name.clone();
                Error::Config { container, trouble }
            }
        })
    }

    /// Reports the Pod's status, if there is news.
    ///
    /// # Errors
    /// When the gateway does not take it; a Pod that is gone needs no report.
    pub async fn report(&self, world: &World, pod: &Bound) -> Result<Receipt, ApiError> {
        let Some(status) = status(world) else {
            return Ok(Receipt::none());
        };
        self.tell.reported(&pod.object, &status);
        let written = self
            .gateway
            .update_status(&skeleton(&pod.object, status))
            .await;
        unless_gone(written.map(|written| written.receipt()))
    }

    async fn delete(&self, pod: &Pod) -> Result<Receipt, ApiError> {
        let uid = Preconditions::uid(&pod.metadata.uid);
        let deleted = self
            .gateway
            .delete::<Pod>(&Key::of(&pod.metadata), uid, Some(0))
            .await;
        match deleted {
            // Another Pod has its name: this one is gone, too.
            Err(error) if error.reason == Reason::Conflict => Ok(Receipt::none()),
            deleted => unless_gone(deleted.map(|written| written.receipt())),
        }
    }
}

/// Where a Pod is, as far as it is there.
fn place(world: &World, pod: &Bound) -> Place {
    let sandbox = world.sandbox();
    Place {
        pod_ip: sandbox
            .map(|sandbox| sandbox.config.ip.to_string())
            .unwrap_or_default(),
        host_ip: pod.host_ip.clone(),
        allocatable: Arc::clone(&pod.allocatable),
    }
}

/// Who the Pod is and in which version, and its new status: all that a status update needs.
fn skeleton(pod: &Pod, status: PodStatus) -> Pod {
    let meta = &pod.metadata;
    let metadata = ObjectMeta {
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        ..ObjectMeta::default()
    };
    Pod {
        metadata,
        status,
        ..Pod::default()
    }
}

fn unless_gone(written: Result<Receipt, ApiError>) -> Result<Receipt, ApiError> {
    match written {
        Err(error) if error.reason == Reason::NotFound => Ok(Receipt::none()),
        written => written,
    }
}
