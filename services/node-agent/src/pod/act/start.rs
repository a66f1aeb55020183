//! Starts of containers.

use std::sync::Arc;
use std::time::Duration;

use setpoint_proto::core::{Container, LifecycleHandler};
use setpoint_runtime::{
    self as runtime, ContainerConfig, ContainerId, ImageOrigin, Processes, Runtime,
};
use tokio::time::timeout;
use tracing::warn;

use super::error::runtime_message;
use super::{Error, Executor, placement};
use crate::pod::environment::{self, environment, expand_words};
use crate::pod::fields::{self, Column};
use crate::pod::volumes::account;
use crate::pod::world::{AssignedPod, WaitingReason, World};
use crate::pod::{container_config, ephemeral, hooks, oom_score, probe};

/// The time that a static Pod waits for the variables of Services.
const SERVICES_TIMEOUT: Duration = Duration::from_secs(1);

/// An attempt at a container.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    /// Name of the container in the spec.
    pub name: &'a str,
    /// Number of the attempt, from 0.
    pub number: u32,
    /// Backoff to apply after this attempt ends.
    pub backoff: Duration,
}

impl<R: Runtime> Executor<R> {
    /// Starts a container, and its postStart hook.
    pub(super) async fn start(
        &self,
        world: &World,
        pod: &AssignedPod,
        attempt: Attempt<'_>,
    ) -> Result<(), Error> {
        let Some(container) = pod.container(attempt.name) else {
            return Ok(());
        };
        let container = container.as_ref();
        self.check_fields(pod, container)?;
        let config = self.config(world, pod, container, attempt).await?;
        let placeholder = config.command.is_empty() && R::RUNS_COMMANDS && !R::RUNS_IMAGES;
        let id = config.id.clone();
        let hook = post_start(pod, container);
        if hook.is_some() {
            self.hooks.announce(&id);
        }
        let started = self.runtime.start(config).await;
        if started.is_err() {
            self.hooks.forget(&id);
        }
        let origin = started.map_err(|error| self.not_started(pod, container, error))?;
        self.record_start(pod, container, origin, attempt.number, placeholder);
        if let Some(handler) = hook {
            self.run_post_start(world, pod, container, id, handler);
        }
        Ok(())
    }

    /// Refuses a container with a field without which it must not run.
    fn check_fields(&self, pod: &AssignedPod, container: &Container) -> Result<(), Error> {
        let column = Column::of(&self.runtime);
        let refused =
            column.and_then(|column| fields::refused(&pod.object.spec, &container.name, column));
        refused.map_or(Ok(()), |field| {
            let message = format!("{field} is not supported on this node");
            Err(self.misconfigured(pod, container, message))
        })
    }

    async fn config(
        &self,
        world: &World,
        pod: &AssignedPod,
        container: &Container,
        attempt: Attempt<'_>,
    ) -> Result<ContainerConfig, Error> {
        let spec = &pod.object.spec;
        let env = self.environment(world, pod, container).await?;
        let processes = self.processes(world, pod, container)?;
        Ok(ContainerConfig {
            id: ContainerId {
                uid: pod.object.metadata.uid.clone(),
                name: attempt.name.to_owned(),
                attempt: attempt.number,
            },
            image: container.image.clone(),
            command: expand_words(&container.command, &env),
            args: expand_words(&container.args, &env),
            working_dir: container.working_dir.clone(),
            backoff: attempt.backoff,
            round: world.round(),
            pull: container_config::pull_policy(&container.image_pull_policy),
            keyring: self.keyring(pod, container).await?,
            resources: container.resources.clone(),
            pod: pod.resources_of_pod(world),
            oom_score_adj: Some(oom_score::of(spec, container, &pod.allocatable)),
            security: container_config::security(spec, container),
            log: self.log,
            console: container_config::console(container),
            dns: self.dns.of(&pod.object).await,
            stop_signal: container_config::stop_signal(container),
            termination_message: container_config::termination_message(container),
            mounts: self.mounts(world, pod, container, &env).await?,
            processes,
            env,
        })
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
        let (gateway, object) = (self.client_of(&pod.object), &pod.object);
        let mut own = self.own_variables(&object.metadata.uid, container);
        own.extend(self.service_variables(pod).await?);
        let env = environment(&gateway, object, container, &placement, own, &files, path).await;
        env.map_err(|error| self.container_error(pod, container, error))
    }

    /// Returns the variables of Services. A static Pod, which runs without a gateway, gets none if no gateway answers
    /// soon.
    async fn service_variables(&self, pod: &AssignedPod) -> Result<Vec<(String, String)>, Error> {
        let gateway = self.client_of(&pod.object);
        let variables = environment::service_variables(&gateway, &pod.object);
        if !pod.is_static {
            return Ok(variables.await?);
        }
        match timeout(SERVICES_TIMEOUT, variables).await {
            Ok(Ok(variables)) => return Ok(variables),
            Ok(Err(error)) => {
                warn!(%error, "a static Pod starts without the variables of Services")
            }
            Err(_) => warn!("a static Pod starts without the variables of Services: no answer"),
        }
        Ok(Vec::new())
    }

    /// Returns the variables that the node sets: those of the API, and that of the account's files where they are not
    /// mounted.
    fn own_variables(&self, uid: &str, container: &Container) -> Vec<(String, String)> {
        let volume = account::volume_of(container);
        let folder = volume.and_then(|volume| self.runtime.unmounted_folder(uid, volume));
        let folder = folder.map(|folder| folder.display().to_string());
        let account = folder.map(|folder| (account::VARIABLE.to_owned(), folder));
        self.api.variables().into_iter().chain(account).collect()
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

    /// Records an Event and returns the error for a container that the runtime has not started.
    pub(super) fn not_started(
        &self,
        pod: &AssignedPod,
        container: &Container,
        error: runtime::Error,
    ) -> Error {
        match error {
            runtime::Error::Image {
                image,
                reason,
                message,
                pulling,
            } => {
                let reason = reason.into();
                let waiting = WaitingReason { reason, message };
                let (pod, name) = (&pod.object, container.name.clone());
                self.events
                    .image_unavailable(pod, &name, &image, &waiting, pulling);
                Error::Config {
                    container: name,
                    waiting,
                }
            }
            runtime::Error::Config(message) => self.misconfigured(pod, container, message),
            runtime::Error::Refused { why, .. } => self.not_created(pod, container, why),
            error @ runtime::Error::State { .. } => {
                self.not_created(pod, container, runtime_message(&error))
            }
            error => error.into(),
        }
    }

    fn record_start(
        &self,
        pod: &AssignedPod,
        container: &Container,
        origin: ImageOrigin,
        attempt: u32,
        placeholder: bool,
    ) {
        let (spec, name) = (&pod.object.spec, &container.name);
        if let (Some(column), Some(_)) = (Column::of(&self.runtime), ephemeral::named(spec, name)) {
            let ignored = fields::ignored_of_ephemeral(spec, name, column);
            self.events.unsupported(&pod.object, &ignored);
        }
        self.events.pulled(&pod.object, container, origin);
        self.events.started(&pod.object, name);
        if placeholder && attempt == 0 {
            self.events.placeholder(&pod.object, name);
        }
    }

    fn run_post_start(
        &self,
        world: &World,
        pod: &AssignedPod,
        container: &Container,
        id: ContainerId,
        handler: LifecycleHandler,
    ) {
        if let Some(target) = self.target(world, container, &id) {
            let run = hooks::Run {
                target,
                handler,
                pod: Arc::new(probe::subject(&pod.object)),
            };
            self.hooks.run_post_start(run, &self.events, &self.wake);
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
    pub(super) fn container_error(
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
}

/// Returns the postStart hook of a container, if its program runs.
fn post_start(pod: &AssignedPod, container: &Container) -> Option<LifecycleHandler> {
    let lifecycle = container.lifecycle.as_ref()?;
    let hook = lifecycle.post_start.clone()?;
    pod.runs.program_of(container).then_some(hook)
}
