//! Injects faults into a cluster of containers that Docker Compose started.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, bail};
use bollard::Docker;
use bollard::models::{
    ContainerSummary, EndpointSettings, NetworkConnectRequest, NetworkDisconnectRequest,
};
use bollard::query_parameters::ListContainersOptions;
use setpoint_tls::Credentials;

use super::fenced::Gateways;
use super::options::Fault;
use crate::launcher::LOOPBACK;

/// The port of a gateway inside its container.
const GATEWAY_PORT: u16 = 6443;
/// Length of a container's host name, a prefix of its id.
const SHORT_ID: usize = 12;

/// The containers of a Compose project on this machine's Docker engine.
pub struct Compose {
    docker: Docker,
    project: String,
    /// Those of an administrator.
    credentials: Credentials,
    pending: Option<Pending>,
}

/// The way to undo the current fault of a container.
enum Pending {
    Start(String),
    Thaw(String),
    Connect(String, Vec<(String, EndpointSettings)>),
}

impl Compose {
    /// Connects to the engine of this machine.
    ///
    /// # Errors
    /// The engine is on another machine or not reachable, or the project has no running container.
    pub async fn open(project: &str, credentials: Credentials) -> anyhow::Result<Self> {
        if std::env::var("DOCKER_HOST").is_ok_and(|host| !host.starts_with("unix://")) {
            bail!(
                "DOCKER_HOST is on another machine: chaos works only on clusters of this machine"
            );
        }
        let docker = Docker::connect_with_unix_defaults()
            .context("no Docker engine runs on this machine")?;
        let compose = Self {
            docker,
            project: project.to_owned(),
            credentials,
            pending: None,
        };
        if compose.containers(None).await?.is_empty() {
            bail!("the compose project {project} has no running container");
        }
        Ok(compose)
    }

    /// Returns the address of a gateway's published port.
    pub async fn published(&self) -> anyhow::Result<String> {
        let containers = self.containers(None).await?;
        let mut ports = containers
            .into_iter()
            .flat_map(|container| container.ports.unwrap_or_default());
        let port = ports.find_map(|port| {
            port.public_port
                .filter(|_| port.private_port == GATEWAY_PORT)
        });
        let project = &self.project;
        let port = port.with_context(|| {
            format!("{project} publishes no gateway port; give its address with --gateway")
        })?;
        Ok(format!("https://{LOOPBACK}:{port}"))
    }

    /// Returns the names of the running instances of a service, `<service>-<host name>`.
    pub async fn replicas(&self, service: &str) -> anyhow::Result<Vec<String>> {
        let containers = self.containers(Some(service)).await?;
        let ids = containers.into_iter().filter_map(|container| container.id);
        let names = ids.map(|id| format!("{service}-{}", id.get(..SHORT_ID).unwrap_or(&id)));
        Ok(names.collect())
    }

    /// Returns the gateways. The engine's networks are reachable from this machine.
    pub async fn gateways(&self) -> anyhow::Result<Gateways> {
        let containers = self.containers(Some("gateway")).await?;
        let ips = containers.into_iter().filter_map(ip);
        let addresses = ips.map(|ip| SocketAddr::new(ip, GATEWAY_PORT));
        Ok(Gateways {
            addresses: addresses.collect(),
            credentials: self.credentials.clone(),
        })
    }

    /// Injects a fault into a container. Records how to undo it first, so that an interruption leaves nothing broken.
    pub async fn inject(&mut self, fault: Fault, name: &str) -> anyhow::Result<()> {
        let id = name.rsplit('-').next().unwrap_or(name).to_owned();
        match fault {
            Fault::Kill => {
                self.pending = Some(Pending::Start(id.clone()));
                self.docker.kill_container(&id, None).await?;
            }
            Fault::Restart => {
                self.pending = Some(Pending::Start(id.clone()));
                self.docker.stop_container(&id, None).await?;
            }
            Fault::Pause => {
                self.pending = Some(Pending::Thaw(id.clone()));
                self.docker.pause_container(&id).await?;
            }
            Fault::Partition => self.disconnect(&id).await?,
            Fault::Delay => bail!(
                "delay needs a cluster of `setpoint up --relays`: Docker networks can be disconnected, but do not delay traffic"
            ),
        }
        Ok(())
    }

    /// Undoes the current fault, if there is one.
    pub async fn heal(&mut self) -> anyhow::Result<()> {
        match self.pending.take() {
            None => {}
            Some(Pending::Start(id)) => self.docker.start_container(&id, None).await?,
            Some(Pending::Thaw(id)) => self.docker.unpause_container(&id).await?,
            Some(Pending::Connect(id, networks)) => {
                for (network, endpoint) in networks {
                    self.connect(&id, &network, endpoint).await?;
                }
            }
        }
        Ok(())
    }

    async fn containers(&self, service: Option<&str>) -> anyhow::Result<Vec<ContainerSummary>> {
        let mut labels = vec![format!("com.docker.compose.project={}", self.project)];
        labels.extend(service.map(|service| format!("com.docker.compose.service={service}")));
        let options = ListContainersOptions {
            filters: Some(HashMap::from([("label".to_owned(), labels)])),
            ..ListContainersOptions::default()
        };
        let listed = self.docker.list_containers(Some(options)).await;
        listed.context("cannot list the containers")
    }

    async fn disconnect(&mut self, id: &str) -> anyhow::Result<()> {
        let container = self.docker.inspect_container(id, None).await?;
        let settings = container.network_settings.unwrap_or_default();
        let networks: Vec<_> = settings.networks.unwrap_or_default().into_iter().collect();
        self.pending = Some(Pending::Connect(id.to_owned(), networks.clone()));
        for (network, _) in networks {
            let request = NetworkDisconnectRequest {
                container: id.to_owned(),
                force: Some(true),
            };
            self.docker.disconnect_network(&network, request).await?;
        }
        Ok(())
    }

    /// Connects a container to a network under its former aliases, by which other containers find it.
    async fn connect(
        &self,
        id: &str,
        network: &str,
        former: EndpointSettings,
    ) -> anyhow::Result<()> {
        let endpoint = EndpointSettings {
            aliases: former.aliases,
            ipam_config: former.ipam_config,
            links: former.links,
            ..EndpointSettings::default()
        };
        let request = NetworkConnectRequest {
            container: id.to_owned(),
            endpoint_config: Some(endpoint),
        };
        Ok(self.docker.connect_network(network, request).await?)
    }
}

fn ip(container: ContainerSummary) -> Option<IpAddr> {
    let networks = container.network_settings?.networks?;
    let addresses = networks.into_values().filter_map(|end| end.ip_address);
    addresses.filter_map(|ip| ip.parse().ok()).next()
}
