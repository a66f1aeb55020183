//! Sandboxes of Pods.

use std::net::Ipv4Addr;

use setpoint_model::{Resources, qos_class};
use setpoint_proto::core::Pod;
use setpoint_runtime::{self as runtime, Hosts, Runtime, SandboxConfig};

use super::error::runtime_message;
use super::{Error, Executor};
use crate::pod::environment::hostname;
use crate::pod::fields::{self, Column};
use crate::pod::volumes::account;
use crate::pod::world::{AssignedPod, WaitingReason, World};
use crate::pod::{cluster_dns, container_config, pod_resources, sysctls};

impl<R: Runtime> Executor<R> {
    /// Creates the sandbox of a Pod, or recreates one that is lost.
    pub(super) async fn run_sandbox(
        &self,
        world: &World,
        pod: &AssignedPod,
        ip: Ipv4Addr,
    ) -> Result<(), Error> {
        self.check_network(&pod.object)?;
        let config = self.sandbox_config(world, pod, ip).await?;
        self.sandbox_result(&pod.object, self.runtime.run_sandbox(config).await)?;
        if let (Some(column), None) = (Column::of(&self.runtime), world.sandbox()) {
            self.remark(&pod.object, column).await;
        }
        Ok(())
    }

    /// Records what the node does not do of what a new Pod asks for.
    async fn remark(&self, pod: &Pod, column: Column) {
        let ignored = fields::ignored(&pod.spec, column);
        self.events.unsupported(pod, &ignored);
        if column == Column::Process && account::has_files(pod) {
            self.events.account_folder(pod);
        }
        if self.dns.is_missing(pod) {
            self.events.missing_dns(pod, R::RUNS_IMAGES);
        }
        if column != Column::Process {
            let config = self.dns.of(pod).await;
            for message in config.iter().flat_map(cluster_dns::exceeded) {
                self.events.dns_config(pod, message);
            }
        }
    }

    /// Checks that a Pod can be connected to the network of its node, unless it is in that of the machine.
    fn check_network(&self, pod: &Pod) -> Result<(), Error> {
        match self.runtime.network_ready() {
            Err(obstacle) if !pod.spec.host_network => {
                let why = obstacle.to_string();
                self.events.network_not_ready(pod, &why);
                Err(Error::Network(why))
            }
            _ => Ok(()),
        }
    }

    /// Returns the entries of a Pod's hosts file; none if its containers have the file of the machine.
    async fn hosts(&self, pod: &Pod) -> Hosts {
        match self.runtime.mounts_volumes() {
            true => container_config::hosts(pod, self.api.entries().await, self.dns.domain()),
            false => Hosts::default(),
        }
    }

    /// Lets the hosts file of a Pod follow the addresses of the cluster. Where that fails, the file stays as it is.
    pub(super) async fn update_hosts(&self, pod: &AssignedPod) {
        let (pod, uid) = (&pod.object, &pod.object.metadata.uid);
        let hosts = self.hosts(pod).await;
        if !self.updates.has_other_hosts(uid, &hosts) {
            return;
        }
        let updated = self.runtime.update_hosts(uid, hostname(pod), &hosts).await;
        match updated {
            Ok(()) => self.updates.record_hosts(uid, hosts),
            Err(error) => {
                let message = runtime_message(&error);
                let message = format!("the hosts file could not be updated: {message}");
                self.events.failed_mount(pod, &message);
            }
        }
    }

    async fn sandbox_config(
        &self,
        world: &World,
        pod: &AssignedPod,
        ip: Ipv4Addr,
    ) -> Result<SandboxConfig, Error> {
        let (meta, spec) = (&pod.object.metadata, &pod.object.spec);
        let volumes = self.volumes(world, pod).await?;
        self.updates.record(&meta.uid, &volumes);
        self.updates.checked(meta, world.instant);
        let hosts = self.hosts(&pod.object).await;
        self.updates.record_hosts(&meta.uid, hosts.clone());
        Ok(SandboxConfig {
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            ip: pod.shared_ip().unwrap_or(ip),
            hostname: hostname(&pod.object).to_owned(),
            hosts,
            host_network: spec.host_network,
            host_pid: spec.host_pid,
            host_ipc: spec.host_ipc,
            privileged: container_config::has_privileged(spec),
            own_users: spec.host_users == Some(false),
            // The runtime chooses it.
            first_user: None,
            runtime_handler: self.runtime_handler(&pod.object).await?,
            overhead: pod_resources::overhead(spec),
            host_ports: container_config::host_ports(spec),
            sysctls: sysctls::values(spec),
            qos_class: qos_class(spec).to_owned(),
            millicpu_share: Resources::of_pod(spec).millicpu,
            resources: pod_resources::of(spec),
            volumes,
        })
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

    /// Removes the sandbox of the Pod with this uid, and what is kept of its containers and volumes.
    pub(super) async fn remove_sandbox(&self, uid: &str) -> Result<(), Error> {
        self.runtime.remove_sandbox(uid).await?;
        self.probes.forget_pod(uid);
        self.hooks.forget_pod(uid);
        self.updates.forget(uid);
        self.tokens.forget(uid);
        Ok(())
    }
}
