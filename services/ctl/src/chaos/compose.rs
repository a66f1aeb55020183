//! Faults in a cluster of containers that compose started.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, bail};
use bollard::Docker;
use bollard::models::{
    ContainerSummary, EndpointSettings, NetworkConnectRequest, NetworkDisconnectRequest,
};
use bollard::query_parameters::ListContainersOptions;

use super::options::Fault;
use crate::shape::address;

/// Where gateways listen inside their containers.
const PORT: u16 = 6443;
/// As much of a container's id as is its host name.
const SHORT: usize = 12;

/// The containers of a compose project on this machine's engine.
pub struct Compose {
    docker: Docker,
    project: String,
    pending: Option<Pending>,
}

/// What is to be undone, and to which container.
enum Pending {
    Start(String),
    Thaw(String),
    Connect(String, Vec<(String, EndpointSettings)>),
}

impl Compose {
    /// The project's containers, if it has any.
    pub async fn open(project: &str) -> anyhow::Result<Self> {
        if std::env::var("DOCKER_HOST").is_ok_and(|host| !host.starts_with("unix://")) {
            bail!("DOCKER_HOST is another machine's engine: chaos is for clusters that run here");
        }
        let docker = Docker::connect_with_unix_defaults().context("no Docker engine runs here")?;
        let compose = Self {
            docker,
            project: project.to_owned(),
            pending: None,
        };
        if compose.containers(None).await?.is_empty() {
            bail!("the compose project {project} has no container that runs");
        }
        Ok(compose)
    }

    /// Where on this machine the gateways are published, by whichever container.
    pub async fn published(&self) -> anyhow::Result<String> {
        let containers = self.containers(None).await?;
        let mut ports = containers
            .into_iter()
            .flat_map(|container| container.ports.unwrap_or_default());
        let port = ports.find_map(|port| port.public_port.filter(|_| port.private_port == PORT));
        let project = &self.project;
        let port = port.with_context(|| {
            format!("{project} publishes no gateway; --gateway says where it is")
        })?;
        Ok(address(port))
    }

    /// The instances of a service that run: `<service>-<host name>`.
    pub async fn replicas(&self, service: &str) -> anyhow::Result<Vec<String>> {
        let containers = self.containers(Some(service)).await?;
        let ids = containers.into_iter().filter_map(|container| container.id);
        let names = ids.map(|id| format!("{service}-{}", id.get(..SHORT).unwrap_or(&id)));
        Ok(names.collect())
    }

    /// Where the gateways tell their metrics: the engine's networks are reached from this machine.
    pub async fn gateways(&self) -> anyhow::Result<Vec<SocketAddr>> {
        let containers = self.containers(Some("gateway")).await?;
        let addresses = containers.into_iter().filter_map(ip);
        Ok(addresses.map(|ip| (ip, PORT).into()).collect())
    }

    /// Breaks a container. What is to be undone is known before anything is done.
    pub async fn inflict(&mut self, fault: Fault, name: &str) -> anyhow::Result<()> {
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
            Fault::Partition => self.cut(&id).await?,
            Fault::Delay => bail!(
                "delay needs a cluster of `setpoint up --relays`: the engine's networks cut, but hold nothing back"
            ),
        }
        Ok(())
    }

    /// Undoes what is broken, if anything is.
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
        listed.context("cannot ask the Docker engine")
    }

    async fn cut(&mut self, id: &str) -> anyhow::Result<()> {
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

    /// Under its former names: without them nobody would find it.
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
