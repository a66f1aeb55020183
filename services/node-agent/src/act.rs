//! Executes actions: calls to the runtime and to the gateway.

mod resize;
mod supervision;
mod volumes;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::client::Preconditions;
use setpoint_controller::{Client, Receipt};
use setpoint_model::Key;
use setpoint_proto::core::{Container, Pod, PodStatus};
use setpoint_proto::meta::{ObjectMeta, StatusCause, StatusDetails};
use setpoint_proto::{ApiError, Reason};
use setpoint_runtime::{
    self as runtime, ContainerConfig, ContainerId, LogLimits, Processes, Runtime, SandboxConfig,
    Wake,
};

use self::volumes::runtime_message;
use crate::container_config;
use crate::downward::Placement;
use crate::environment::{self, environment, expand_words, hostname};
use crate::ephemeral;
use crate::events::Events;
use crate::fields::{self, Column};
use crate::hooks::{self, Hooks};
use crate::plan::Action;
use crate::pod_resources;
use crate::probe::{self, Probes};
use crate::status::status;
use crate::sysctls;
use crate::volumes::{Tokens, Updates};
use crate::world::{AssignedPod, WaitingReason, World};

/// The error of an action.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The gateway returned an error or did not answer.
    #[error("the gateway returned an error")]
    Gateway(#[from] ApiError),
    /// The runtime returned an error.
    #[error("the runtime returned an error")]
    Runtime(#[from] runtime::Error),
    /// A container cannot be resized; with the reason.
    #[error("{0}")]
    Resize(String),
    /// A container cannot be started as its Pod configures it.
    #[error("{}", cannot_start(container, &waiting.message))]
    Config {
        /// Name of the container; empty if the whole Pod is affected.
        container: String,
        /// The container's waiting state.
        waiting: WaitingReason,
    },
}

fn cannot_start(container: &str, why: &str) -> String {
    match container {
        "" => format!("no container can be started: {why}"),
        named => format!("container {named} cannot be started: {why}"),
    }
}

/// The kind in the details of an error that keeps a container from starting.
const CONTAINER: &str = "Container";

/// The kind in the details of an error of a resize.
const RESIZE: &str = "Resize";

impl From<Error> for ApiError {
    /// Keeps the waiting state of a container in the error's details; see [`WaitingReason::of_error`].
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Gateway(error) => error,
            Error::Runtime(error) => {
                Self::new(Reason::InternalError, format!("{message}: {error}"))
            }
            Error::Resize(_) => {
                let kind = RESIZE.to_owned();
                Self::new(Reason::InternalError, message).with_details(StatusDetails {
                    kind,
                    ..StatusDetails::default()
                })
            }
            Error::Config { container, waiting } => {
                let cause = StatusCause {
                    reason: waiting.reason.into_owned(),
                    message: waiting.message,
                    ..StatusCause::default()
                };
                let details = StatusDetails {
                    kind: CONTAINER.to_owned(),
                    name: container,
                    causes: vec![cause],
                    ..StatusDetails::default()
                };
                Self::new(Reason::Invalid, message).with_details(details)
            }
        }
    }
}

/// Returns why a container cannot be resized, if this is such an error.
pub fn resize_error(error: &ApiError) -> Option<String> {
    let details = error.details.as_ref();
    let resizing = details.is_some_and(|details| details.kind == RESIZE);
    resizing.then(|| error.message.clone())
}

impl WaitingReason {
    /// Returns the name of the container that an error keeps from starting, and its waiting state.
    pub fn of_error(error: &ApiError) -> Option<(String, Self)> {
        let details = error
            .details
            .as_ref()
            .filter(|details| details.kind == CONTAINER)?;
        let cause = details.causes.first()?;
        let waiting = Self {
            reason: cause.reason.clone().into(),
            message: cause.message.clone(),
        };
        Some((details.name.clone(), waiting))
    }
}

/// Executes planned actions.
pub struct Executor<R> {
    /// Runs sandboxes and containers.
    pub runtime: R,
    /// The client of the gateway.
    pub gateway: Client,
    /// Records Events about Pods.
    pub events: Events,
    /// The probes of running containers.
    pub probes: Arc<Probes>,
    /// The lifecycle hooks in progress.
    pub hooks: Arc<Hooks>,
    /// Enqueues a Pod whose probes or hooks have a new result.
    pub wake: Wake,
    /// The tokens in volumes.
    pub tokens: Tokens,
    /// The files in volumes.
    pub updates: Updates,
    /// The paths of the machine below which Pods may mount.
    pub host_paths: Vec<String>,
    /// The directory of the node's own persistent volumes, if it keeps any.
    pub local_path: Option<PathBuf>,
    /// Limits of container logs.
    pub log: LogLimits,
}

impl<R: Runtime> Executor<R> {
    /// Executes an action. The receipt covers the write to the gateway, if there was one.
    ///
    /// # Errors
    /// If the action failed; a later reconcile may retry it.
    pub async fn execute(&self, world: &World, action: &Action) -> Result<Receipt, Error> {
        let pod = world.pod.as_ref();
        match (action, pod) {
            (Action::RunSandbox { ip }, Some(pod)) => {
                let meta = &pod.object.metadata;
                let volumes = self.volumes(world, pod).await?;
                self.updates.record(&meta.uid, &volumes);
                self.updates.checked(meta, world.instant);
                let config = SandboxConfig {
                    namespace: meta.namespace.clone(),
                    name: meta.name.clone(),
                    uid: meta.uid.clone(),
                    ip: pod.shared_ip().unwrap_or(*ip),
                    hostname: hostname(&pod.object).to_owned(),
                    hosts: container_config::hosts(&pod.object),
                    sysctls: sysctls::values(&pod.object.spec),
                    resources: pod_resources::of(&pod.object.spec),
                    volumes,
                };
                self.sandbox_result(&pod.object, self.runtime.run_sandbox(config).await)?;
                if let (Some(column), None) = (Column::of(&self.runtime), world.sandbox()) {
                    let ignored = fields::ignored(&pod.object.spec, column);
                    self.events.unsupported(&pod.object, &ignored);
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
                // Boxed, since a debug build keeps the future on the stack of each caller.
                Box::pin(self.start(world, pod, name, *attempt, *backoff)).await?;
            }
            (Action::UpdateVolumes, Some(pod)) => self.update_volumes(world, pod).await,
            (Action::Probe(id), Some(pod)) => self.probe(world, pod, id),
            (
                Action::Kill {
                    id,
                    grace,
                    reason,
                    restarts,
                },
                Some(pod),
            ) => {
                self.events
                    .killing(&pod.object, &id.name, *reason, *restarts);
                self.stop(world, Some(pod), id, *grace).await?;
            }
            (Action::PreStop { id, grace }, Some(pod)) => self.hold(world, pod, id, *grace),
            (Action::Stop { id, grace }, pod) => {
                if let Some(pod) = pod {
                    self.events.stopping(&pod.object, &id.name);
                }
                self.stop(world, pod, id, *grace).await?;
            }
            (Action::ResizePod(resources), Some(pod)) => {
                self.resize_pod(pod, *resources).await?;
            }
            (Action::Resize(id), Some(pod)) => Box::pin(self.resize(world, pod, id)).await?,
            (Action::Remove(id), _) => {
                self.runtime.remove(id).await?;
                self.probes.forget(id);
                self.hooks.forget(id);
            }
            (Action::RemoveSandbox(uid), _) => {
                self.runtime.remove_sandbox(uid).await?;
                self.probes.forget_pod(uid);
                self.hooks.forget_pod(uid);
                self.updates.forget(uid);
                self.tokens.forget(uid);
            }
            (Action::UpdateStatus, Some(pod)) => {
                let Some(status) = status(world) else {
                    return Ok(Receipt::none());
                };
                return Ok(self.update_status(pod, status).await?);
            }
            (Action::Delete, Some(pod)) => return Ok(self.delete(&pod.object).await?),
            (Action::Admit | Action::Allocate, _) | (_, None) => {}
        }
        Ok(Receipt::none())
    }

    async fn start(
        &self,
        world: &World,
        pod: &AssignedPod,
        name: &str,
        attempt: u32,
        backoff: Duration,
    ) -> Result<(), Error> {
        let spec = &pod.object.spec;
        let Some(container) = pod.container(name) else {
            return Ok(());
        };
        let container = container.as_ref();
        let refused =
            Column::of(&self.runtime).and_then(|column| fields::refused(spec, name, column));
        if let Some(field) = refused {
            let message = format!("{field} is not supported on this node");
            return Err(self.misconfigured(pod, container, message));
        }
        let env = self.environment(world, pod, container).await?;
        let processes = self.processes(world, pod, container)?;
        let config = ContainerConfig {
            id: ContainerId {
                uid: pod.object.metadata.uid.clone(),
                name: name.to_owned(),
                attempt,
            },
            image: container.image.clone(),
            command: expand_words(&container.command, &env),
            args: expand_words(&container.args, &env),
            working_dir: container.working_dir.clone(),
            backoff,
            round: world.round(),
            pull: container_config::pull_policy(&container.image_pull_policy),
            resources: container.resources.clone(),
            pod: pod.resources_of_pod(world),
            security: container_config::security(spec, container),
            log: self.log,
            console: container_config::console(container),
            dns: container_config::dns(spec),
            stop_signal: container_config::stop_signal(container),
            termination_message: container_config::termination_message(container),
            mounts: self.mounts(world, pod, container, &env).await?,
            processes,
            env,
        };
        let placeholder = config.command.is_empty() && R::RUNS_COMMANDS && !R::RUNS_IMAGES;
        let id = config.id.clone();
        let hook = container
            .lifecycle
            .as_ref()
            .and_then(|own| own.post_start.as_ref());
        let hook = hook.filter(|_| pod.runs.program_of(container));
        if hook.is_some() {
            self.hooks.announce(&id);
        }
        let started = self.runtime.start(config).await;
        if started.is_err() {
            self.hooks.forget(&id);
        }
        let origin = match started {
            Err(runtime::Error::Image {
                image,
                reason,
                message,
                pulling,
            }) => {
                let reason = reason.into();
                let waiting = WaitingReason { reason, message };
                self.events
                    .image_unavailable(&pod.object, name, &image, &waiting, pulling);
                let container = name.to_owned();
                return Err(Error::Config { container, waiting });
            }
            Err(runtime::Error::Config(message)) => {
                return Err(self.misconfigured(pod, container, message));
            }
            Err(runtime::Error::Refused { why, .. }) => {
                return Err(self.not_created(pod, container, why));
            }
            Err(error @ runtime::Error::State { .. }) => {
                return Err(self.not_created(pod, container, runtime_message(&error)));
            }
            started => started?,
        };
        if let (Some(column), Some(_)) = (Column::of(&self.runtime), ephemeral::named(spec, name)) {
            let ignored = fields::ignored_of_ephemeral(spec, name, column);
            self.events.unsupported(&pod.object, &ignored);
        }
        self.events.pulled(&pod.object, container, origin);
        self.events
            .started(&pod.object, container, attempt, placeholder);
        if let (Some(handler), Some(target)) = (hook, self.target(world, container, &id)) {
            let run = hooks::Run {
                target,
                handler: handler.clone(),
                pod: Arc::new(probe::subject(&pod.object)),
            };
            self.hooks.run_post_start(run, &self.events, &self.wake);
        }
        Ok(())
    }

    /// Returns whose processes a container sees.
    fn processes(
        &self,
        world: &World,
        pod: &AssignedPod,
        container: &Container,
    ) -> Result<Processes, Error> {
        let spec = &pod.object.spec;
        let ephemeral = ephemeral::named(spec, &container.name);
        let target = ephemeral.map_or("", |found| found.target_container_name.as_str());
        if spec.share_process_namespace == Some(true) {
            return Ok(Processes::OfPod);
        }
        match (target, world.running(target)) {
            ("", _) => Ok(Processes::Own),
            (_, Some(running)) => Ok(Processes::Of(running.id.clone())),
            _ => {
                let message = format!("unable to find target container {target:?}");
                Err(self.misconfigured(pod, container, message))
            }
        }
    }

    /// Records an Event and returns the error for a container that cannot be started as configured.
    fn misconfigured(&self, pod: &AssignedPod, container: &Container, message: String) -> Error {
        let error = environment::Error::Config(WaitingReason::config(message));
        self.container_error(pod, container, error)
    }

    /// Records an Event and returns the error for a container that the runtime cannot create.
    fn not_created(&self, pod: &AssignedPod, container: &Container, message: String) -> Error {
        let error = environment::Error::Config(WaitingReason::refused(message));
        self.container_error(pod, container, error)
    }

    /// Returns the error for a container that lacks what its configuration refers to, and records an Event unless the
    /// gateway is the cause.
    fn container_error(
        &self,
        pod: &AssignedPod,
        container: &Container,
        error: environment::Error,
    ) -> Error {
        match error {
            environment::Error::Gateway(error) => Error::Gateway(error),
            environment::Error::Config(waiting) => {
                self.events.failed(&pod.object, container, &waiting.message);
                let container = container.name.clone();
                Error::Config { container, waiting }
            }
        }
    }

    fn sandbox_result(&self, pod: &Pod, made: Result<(), runtime::Error>) -> Result<(), Error> {
        match made {
            Err(runtime::Error::Image {
                reason, message, ..
            }) => {
                self.events.sandbox_failed(pod, &message);
                let reason = reason.into();
                let (container, waiting) = (String::new(), WaitingReason { reason, message });
                Err(Error::Config { container, waiting })
            }
            Err(error) => {
                self.events.sandbox_failed(pod, &runtime_message(&error));
                Err(error.into())
            }
            Ok(()) => Ok(()),
        }
    }

    async fn environment(
        &self,
        world: &World,
        pod: &AssignedPod,
        container: &Container,
    ) -> Result<Vec<(String, String)>, Error> {
        if !R::RUNS_COMMANDS {
            return Ok(Vec::new());
        }
        let (placement, path) = (placement(world, pod), !R::RUNS_IMAGES);
        let files = self.env_files(&pod.object.metadata.uid, container).await;
        let (gateway, object) = (&self.gateway, &pod.object);
        let env = environment(gateway, object, container, &placement, &files, path).await;
        env.map_err(|error| self.container_error(pod, container, error))
    }

    /// Writes the Pod's status.
    ///
    /// # Errors
    /// If the gateway refuses the write. A Pod that no longer exists is not an error.
    pub async fn update_status(
        &self,
        pod: &AssignedPod,
        status: PodStatus,
    ) -> Result<Receipt, ApiError> {
        self.events.status_updated(&pod.object, &status);
        self.events.resized(pod, &status);
        let update = status_update(&pod.object, status);
        let written = self.gateway.update_status(&update).await;
        Receipt::unless_gone(written.map(|written| written.receipt()))
    }

    async fn delete(&self, pod: &Pod) -> Result<Receipt, ApiError> {
        let uid = Preconditions::uid(&pod.metadata.uid);
        let deleted = self
            .gateway
            .delete::<Pod>(&Key::of(&pod.metadata), uid, Some(0))
            .await;
        match deleted {
            // The precondition on the uid failed: this Pod is gone and another has its name.
            Err(error) if error.reason == Reason::Conflict => Ok(Receipt::none()),
            deleted => Receipt::unless_gone(deleted.map(|written| written.receipt())),
        }
    }
}

/// Returns the node-side values of the Pod's downward API.
fn placement(world: &World, pod: &AssignedPod) -> Placement {
    let sandbox = world.sandbox();
    Placement {
        pod_ip: sandbox
            .map(|sandbox| sandbox.config.ip.to_string())
            .unwrap_or_default(),
        host_ip: pod.host_ip.clone(),
        allocatable: Arc::clone(&pod.allocatable),
    }
}

/// Returns the minimal object for a status update: identity, resource version and status.
fn status_update(pod: &Pod, status: PodStatus) -> Pod {
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
