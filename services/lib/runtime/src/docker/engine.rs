//! The connection to the container engine, and the agent's place in it.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::ListContainersOptionsBuilder;
use bollard::{API_DEFAULT_VERSION, Docker};
use tokio::time::timeout;

use super::identity::filter;
use super::network;
use super::settings::Settings;
use crate::cgroup::Cgroups;

/// Timeout of one call. Pulls report progress and are not affected.
const CALL_TIMEOUT_SECS: u64 = 60;
/// Timeout of the first answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Default name of the Pod network and of the cluster outside Compose.
const DEFAULT_NAME: &str = "setpoint";
/// Label that Compose sets on what belongs to a project.
pub(super) const COMPOSE_PROJECT: &str = "com.docker.compose.project";
/// Label with the number of a container among those of its service.
pub(super) const COMPOSE_NUMBER: &str = "com.docker.compose.container-number";
/// Label that Compose sets on the containers of a service.
pub(super) const COMPOSE_SERVICE: &str = "com.docker.compose.service";

/// A connected engine.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(super) client: Docker,
    /// Cluster label of its containers.
    pub cluster: String,
    /// Id of the Pod network.
    pub(super) network: String,
    /// Address of this machine in the Pod network.
    pub address: Ipv4Addr,
    /// Name of the node, if the agent is a numbered Compose container.
    pub node_name: Option<String>,
    /// The program that reaches Pods from within their pause containers, if the agent runs in a container that does not
    /// reach their network: its own binary.
    pub(super) helper: Option<PathBuf>,
    /// The image of the agent's own container, if it runs in one.
    pub(super) own_image: Option<String>,
    /// The project and the service of Compose that it is of, and its number.
    pub(super) own_number: Option<(String, String, String)>,
    /// Whether the agent runs in a container of the engine, so that their paths differ.
    pub contained: bool,
    /// A path on the file system of its images, as far as the agent sees it.
    pub root: PathBuf,
    /// The cgroups of Pods, if the agent manages those of the engine.
    pub(super) cgroups: Option<Cgroups>,
    /// Number of CPUs.
    pub(super) cpus: i64,
    /// Its version.
    pub version: String,
    /// Confinement of containers, for example `name=seccomp,profile=default` or `name=apparmor`.
    pub(super) security_options: Vec<String>,
}

/// The error of connecting to the engine.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No engine listens, or it did not answer in time.
    #[error("no container engine answers at {socket}")]
    Unreachable {
        /// Path of the socket.
        socket: String,
    },
    /// The engine returned an error.
    #[error("the container engine returned an error")]
    Refused(#[from] Error),
}

impl Engine {
    /// Connects to the engine, finds the agent's own container, and creates the Pod network if it does not exist.
    ///
    /// # Errors
    /// If the engine does not answer in time or returns an error.
    pub async fn connect(settings: &Settings) -> Result<Self, ConnectError> {
        let client = client(settings).await?;
        let own_placement = own_placement(&client).await;
        let cluster = [&settings.cluster, &own_placement.project, DEFAULT_NAME]
            .into_iter()
            .find(|name| !name.is_empty())
            .map(ToOwned::to_owned);
        let (network, address) = match (settings.network.as_str(), own_placement.pods) {
            ("", Some((network, address))) => (network, address),
            ("", None) => network::named(&client, DEFAULT_NAME).await?,
            (named, _) => network::named(&client, named).await?,
        };
        let info = client.info().await?;
        let cluster = cluster.unwrap_or_default();
        // In a container, the agent sees other cgroups than the engine.
        let cgroups = match own_placement.found {
            true => None,
            false => super::pod_cgroup::find(&info, &cluster),
        };
        let own_networks = own_placement.networks;
        let is_isolated = own_networks.is_some_and(|networks| !networks.contains(&network));
        Ok(Self {
            helper: is_isolated.then(|| "/proc/self/exe".into()),
            client,
            cluster,
            cgroups,
            network,
            address,
            contained: own_placement.found,
            own_image: own_placement.image,
            own_number: own_placement
                .service
                .zip(own_placement.number.clone())
                .map(|(service, number)| (own_placement.project, service, number)),
            node_name: own_placement.number.map(|number| format!("node-{number}")),
            // In a container of the engine, the file system of the agent is on that of the images.
            root: info
                .docker_root_dir
                .map(PathBuf::from)
                .filter(|root| root.exists())
                .unwrap_or_else(|| ".".into()),
            cpus: info.ncpu.unwrap_or(1),
            version: info.server_version.unwrap_or_default(),
            security_options: info.security_options.unwrap_or_default(),
        })
    }

    /// Lets the agent reach Pods only from within their pause containers, by this program.
    #[must_use]
    pub fn from_within(self, program: impl Into<PathBuf>) -> Self {
        Self {
            helper: Some(program.into()),
            ..self
        }
    }

    /// Returns whether the agent is in a container that does not reach the network of Pods.
    pub const fn is_isolated(&self) -> bool {
        self.helper.is_some()
    }

    /// Returns the addresses that the containers of a Compose service have in the network of Pods.
    ///
    /// # Errors
    /// If the engine does not list its containers.
    pub async fn addresses_of(&self, service: &str) -> Result<Vec<Ipv4Addr>, Error> {
        let mut filters = filter(&[(COMPOSE_SERVICE, service)]);
        filters.insert("network".to_owned(), vec![self.network.clone()]);
        let options = ListContainersOptionsBuilder::default()
            .filters(&filters)
            .build();
        let found = self.client.list_containers(Some(options)).await?;
        let networks = found.into_iter().filter_map(|container| {
            let networks = container.network_settings?.networks?;
            networks
                .into_values()
                .find(|network| network.network_id.as_ref() == Some(&self.network))
        });
        let addresses = networks.filter_map(|network| network.ip_address?.parse().ok());
        Ok(addresses.collect())
    }

    /// Returns whether the engine confines containers by `name`: `seccomp` or `apparmor`.
    pub(super) fn has_security_option(&self, name: &str) -> bool {
        let named = |option: &String| option.split(',').any(|part| part == format!("name={name}"));
        self.security_options.iter().any(named)
    }
}

/// Returns a client of the engine, with a negotiated API version.
pub async fn client(settings: &Settings) -> Result<Docker, ConnectError> {
    let socket = settings.socket.display().to_string();
    let silent = |_| ConnectError::Unreachable {
        socket: socket.clone(),
    };
    let client = Docker::connect_with_unix(&socket, CALL_TIMEOUT_SECS, API_DEFAULT_VERSION)
        .map_err(silent)?;
    match timeout(CONNECT_TIMEOUT, client.negotiate_version()).await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(_)) | Err(_) => Err(ConnectError::Unreachable { socket }),
    }
}

/// Properties of the agent's own container; empty outside a container.
#[derive(Default)]
struct OwnContainer {
    found: bool,
    image: Option<String>,
    service: Option<String>,
    project: String,
    number: Option<String>,
    pods: Option<(String, Ipv4Addr)>,
    /// Ids of its networks; `None` outside a container, and in the networks of the machine.
    networks: Option<Vec<String>>,
}

async fn own_placement(client: &Docker) -> OwnContainer {
    let Some(container) = own_container(client).await else {
        return OwnContainer::default();
    };
    let labels = container
        .config
        .as_ref()
        .and_then(|config| config.labels.clone());
    let mut labels = labels.unwrap_or_default();
    let project = labels.remove(COMPOSE_PROJECT).unwrap_or_default();
    OwnContainer {
        found: true,
        image: container.image.clone(),
        service: labels.remove(COMPOSE_SERVICE),
        number: labels.remove(COMPOSE_NUMBER),
        pods: network::of_project(client, &project).await,
        networks: networks(&container),
        project,
    }
}

fn networks(container: &ContainerInspectResponse) -> Option<Vec<String>> {
    let host = container.host_config.as_ref();
    let mode = host.and_then(|host| host.network_mode.as_deref());
    let networks = container.network_settings.as_ref()?.networks.as_ref();
    let ids = networks.into_iter().flat_map(|networks| networks.values());
    let ids = ids
        .filter_map(|network| network.network_id.clone())
        .collect();
    (mode != Some("host")).then_some(ids)
}

/// Returns the agent's Compose project, or the default cluster.
pub async fn own_cluster(client: &Docker) -> String {
    match own_placement(client).await.project {
        none if none.is_empty() => DEFAULT_NAME.to_owned(),
        project => project,
    }
}

/// Returns the agent's own container. Its host name is a prefix of its id, unless another was set.
async fn own_container(client: &Docker) -> Option<ContainerInspectResponse> {
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let hostname = hostname.trim();
    let container = client.inspect_container(hostname, None).await.ok()?;
    let ours = container
        .id
        .as_ref()
        .is_some_and(|id| id.starts_with(hostname));
    ours.then_some(container)
}
