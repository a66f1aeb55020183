//! Ports of the engine's machine, each of which a container forwards to an address in the network of Pods.
//!
//! The engine itself is what agents agree by: the first agent that runs does it, and a port has one container of one
//! name, which a sweep of the cluster removes. If two take themselves for the first one for a moment, nothing is made
//! twice.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use bollard::errors::Error as BollardError;
use bollard::models::{
    ContainerCreateBody, ContainerSummary, ContainerSummaryStateEnum, EndpointSettings, HostConfig,
    NetworkingConfig, PortBinding, RestartPolicy, RestartPolicyNameEnum,
};
use bollard::query_parameters::{CreateContainerOptionsBuilder, ListContainersOptionsBuilder};

use super::creation::is_conflict;
use super::engine::{COMPOSE_NUMBER, COMPOSE_PROJECT, COMPOSE_SERVICE, Engine};
use super::identity::{CLUSTER, filter};
use super::{Docker, engine_error};
use crate::Error;

/// The label with the port and its target.
const PORT: &str = "setpoint.dev/port";
const NO_NEW_PRIVILEGES: &str = "no-new-privileges";

/// A port of the engine's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Forward {
    /// Whether it is one of UDP, not of TCP.
    pub udp: bool,
    /// Its number, there and at the target.
    pub port: u16,
    /// The address of the engine's machine that accepts connections.
    pub at: IpAddr,
    /// The target in the network of Pods.
    pub to: Ipv4Addr,
}

impl Forward {
    const fn protocol(&self) -> &'static str {
        if self.udp { "udp" } else { "tcp" }
    }

    fn container(&self, cluster: &str) -> String {
        format!("k8s_port_{cluster}_{}_{}", self.protocol(), self.port)
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { port, at, to, .. } = self;
        write!(f, "{port}/{} at {at} to {to}", self.protocol())
    }
}

/// A container that forwards a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarder {
    /// The engine's id.
    pub id: String,
    /// The text of its [`Forward`].
    pub forward: String,
    /// Whether it runs, as far as the engine knows.
    pub runs: bool,
}

impl Docker {
    /// Returns whether this agent is the one that forwards ports.
    ///
    /// # Errors
    /// If the engine does not list its containers.
    pub async fn forwards_ports(&self) -> Result<bool, Error> {
        let first = is_first(&self.shared.engine).await;
        first.map_err(|error| engine_error("list the agents", error))
    }

    /// Returns the containers of the cluster that forward ports.
    ///
    /// # Errors
    /// If the engine does not list them.
    pub async fn forwarders(&self) -> Result<Vec<Forwarder>, Error> {
        let engine = &self.shared.engine;
        let mut filters = filter(&[(CLUSTER, &engine.cluster)]);
        filters
            .entry("label".to_owned())
            .or_default()
            .push(PORT.to_owned());
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let listed = engine.client.list_containers(Some(options)).await;
        let listed = listed.map_err(|error| engine_error("list the forwarded ports", error))?;
        Ok(listed.into_iter().filter_map(forwarder).collect())
    }

    /// Forwards a port, unless that is done.
    ///
    /// # Errors
    /// If the engine does not start its container, for example because the port is in use.
    pub async fn start_forwarder(&self, forward: &Forward) -> Result<(), Error> {
        let engine = &self.shared.engine;
        let failed = |error| engine_error(format!("publish port {forward}"), error);
        let name = forward.container(&engine.cluster);
        let options = CreateContainerOptionsBuilder::default().name(&name).build();
        match engine
            .client
            .create_container(Some(options), body(engine, forward))
            .await
        {
            Ok(_) => {}
            // Another agent has created it just now.
            Err(error) if is_conflict(&error) => {}
            Err(error) => return Err(failed(error)),
        }
        let started: Result<(), BollardError> = engine.client.start_container(&name, None).await;
        if let Err(error) = started {
            // The engine would keep it with the ports of an attempt that has failed.
            self.stop_forwarder(&name).await?;
            return Err(failed(error));
        }
        Ok(())
    }

    /// Removes the container that forwards a port.
    ///
    /// # Errors
    /// If the engine does not remove it.
    pub async fn stop_forwarder(&self, container: &str) -> Result<(), Error> {
        self.shared.destroy(container).await
    }
}

/// Returns whether the agent is the first of those of its Compose service that run, or is not one of several.
async fn is_first(engine: &Engine) -> Result<bool, BollardError> {
    let Some((project, service, number)) = &engine.own_number else {
        return Ok(true);
    };
    let labels = [(COMPOSE_PROJECT, &**project), (COMPOSE_SERVICE, service)];
    let options = ListContainersOptionsBuilder::default()
        .filters(&filter(&labels))
        .build();
    let listed = engine.client.list_containers(Some(options)).await?;
    let numbers = listed.into_iter().filter_map(|one| {
        let runs = one.state == Some(ContainerSummaryStateEnum::RUNNING);
        let number = one.labels?.remove(COMPOSE_NUMBER)?.parse::<u32>().ok();
        number.filter(|_| runs)
    });
    let first = numbers.min();
    Ok(first.is_none_or(|first| first.to_string() == *number))
}

fn forwarder(container: ContainerSummary) -> Option<Forwarder> {
    Some(Forwarder {
        id: container.id?,
        forward: container.labels?.remove(PORT)?,
        runs: container.state == Some(ContainerSummaryStateEnum::RUNNING),
    })
}

/// Returns the request for a container that forwards a port. It has no rights, and is in the network of Pods.
fn body(engine: &Engine, forward: &Forward) -> ContainerCreateBody {
    let port = format!("{}/{}", forward.port, forward.protocol());
    let binding = PortBinding {
        host_ip: Some(forward.at.to_string()),
        host_port: Some(forward.port.to_string()),
    };
    let endpoint = EndpointSettings {
        network_id: Some(engine.network.clone()),
        ..EndpointSettings::default()
    };
    let target = format!("{}:{}", forward.to, forward.port);
    let command = [
        "forward",
        forward.protocol(),
        &forward.port.to_string(),
        &target,
    ];
    let labels = [
        (CLUSTER, engine.cluster.clone()),
        (PORT, forward.to_string()),
    ];
    ContainerCreateBody {
        image: engine.own_image.clone(),
        cmd: Some(command.map(str::to_owned).into()),
        labels: Some(labels.map(|(name, value)| (name.to_owned(), value)).into()),
        exposed_ports: Some(vec![port.clone()]),
        host_config: Some(HostConfig {
            readonly_rootfs: Some(true),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec![NO_NEW_PRIVILEGES.to_owned()]),
            network_mode: Some(engine.network.clone()),
            port_bindings: Some(HashMap::from([(port, Some(vec![binding]))])),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::UNLESS_STOPPED),
                maximum_retry_count: None,
            }),
            ..HostConfig::default()
        }),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some(HashMap::from([(engine.network.clone(), endpoint)])),
        }),
        ..ContainerCreateBody::default()
    }
}
