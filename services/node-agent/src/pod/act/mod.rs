//! Executes actions: calls to the runtime and to the gateway.

mod error;
mod pull_secrets;
mod resize;
mod runtime_class;
mod sandbox;
mod start;
mod supervision;
mod volumes;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use setpoint_controller::{Client, Receipt};
use setpoint_proto::core::Pod;
use setpoint_runtime::{ContainerId, LogLimits, Runtime, Wake};

pub use self::error::{Error, resize_error};
use self::start::Attempt;
use crate::pod::api_server::ApiServer;
use crate::pod::clients::NodeClients;
use crate::pod::cluster_dns::Resolver;
use crate::pod::downward::Placement;
use crate::pod::events::Events;
use crate::pod::hooks::Hooks;
use crate::pod::plan::Action;
use crate::pod::probe::Probes;
use crate::pod::volumes::{Tokens, Updates};
use crate::pod::world::{AssignedPod, World};

/// Executes planned actions.
pub struct Executor<R> {
    /// Runs sandboxes and containers.
    pub runtime: R,
    /// The clients of the agent's nodes.
    pub clients: NodeClients,
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
    /// The API as Pods reach it.
    pub api: ApiServer,
    /// The cluster's DNS as Pods reach it.
    pub dns: Resolver,
}

impl<R: Runtime> Executor<R> {
    /// Returns the client of the node that a Pod is bound to.
    fn client_of(&self, pod: &Pod) -> Client {
        self.clients.of(&pod.spec.node_name)
    }

    /// Executes an action. The receipt covers the write to the gateway, if there was one.
    ///
    /// # Errors
    /// If the action failed; a later reconcile may retry it.
    pub async fn execute(&self, world: &World, action: &Action) -> Result<Receipt, Error> {
        match (action, &world.pod) {
            (Action::UpdateStatus, Some(pod)) => return Ok(self.report(world, pod).await?),
            (Action::Delete, Some(pod)) => return Ok(self.delete(&pod.object).await?),
            (Action::Stop { id, grace }, pod) => {
                if let Some(pod) = pod {
                    self.events.stopping(&pod.object, &id.name);
                }
                self.stop(world, pod.as_ref(), id, *grace).await?;
            }
            (Action::Remove(id), _) => self.remove(id).await?,
            (Action::RemoveSandbox(uid), _) => self.remove_sandbox(uid).await?,
            (change, Some(pod)) => self.change(world, pod, change).await?,
            (_, None) => {}
        }
        Ok(Receipt::none())
    }

    /// Executes an action on the sandbox or a container of a Pod that goes on.
    async fn change(&self, world: &World, pod: &AssignedPod, action: &Action) -> Result<(), Error> {
        match action {
            Action::RunSandbox { ip } => self.run_sandbox(world, pod, *ip).await?,
            Action::Start {
                name,
                attempt: number,
                backoff,
            } => {
                let (number, backoff) = (*number, *backoff);
                let attempt = Attempt {
                    name,
                    number,
                    backoff,
                };
                // Boxed, since a debug build keeps the future on the stack of each caller.
                Box::pin(self.start(world, pod, attempt)).await?;
            }
            Action::UpdateVolumes => {
                self.update_hosts(pod).await;
                self.update_volumes(world, pod).await;
            }
            Action::Probe(id) => self.probe(world, pod, id),
            Action::Kill {
                id,
                grace,
                reason,
                restarts,
            } => {
                let name = &id.name;
                self.events.killing(&pod.object, name, *reason, *restarts);
                self.stop(world, Some(pod), id, *grace).await?;
            }
            Action::PreStop { id, grace } => self.hold(world, pod, id, *grace),
            Action::ResizePod(resources) => self.resize_pod(pod, *resources).await?,
            Action::Resize(id) => Box::pin(self.resize(world, pod, id)).await?,
            Action::Admit
            | Action::Allocate
            | Action::Stop { .. }
            | Action::Remove(_)
            | Action::UpdateStatus
            | Action::RemoveSandbox(_)
            | Action::Delete => {}
        }
        Ok(())
    }

    /// Removes an attempt that has ended.
    async fn remove(&self, id: &ContainerId) -> Result<(), Error> {
        self.runtime.remove(id).await?;
        self.probes.forget(id);
        self.hooks.forget(id);
        Ok(())
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
