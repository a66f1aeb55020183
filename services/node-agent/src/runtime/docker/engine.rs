//! The container engine, and the agent's own place in it.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{ContainerInspectResponse, NetworkCreateRequest, NetworkInspect};
use bollard::query_parameters::ListNetworksOptionsBuilder;
use bollard::{API_DEFAULT_VERSION, Docker};
use tokio::time::timeout;

use super::identity::filter;
use super::settings::Settings;

/// Longer than an engine that works takes for anything, pulls apart.
const CALL: u64 = 60;
/// An engine that does not answer by then is none.
const ANSWER: Duration = Duration::from_secs(10);
/// The network of Pods outside Compose, and the name of a cluster that has none.
const DEFAULT: &str = "setpoint";
/// The network of Pods in a Compose project.
const PODS: &str = "pods";
/// How Compose says whose and which of its networks one is.
const COMPOSE_PROJECT: &str = "com.docker.compose.project";
const COMPOSE_NETWORK: &str = "com.docker.compose.network";

/// An engine that answers.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(super) client: Docker,
    /// Which cluster its containers belong to.
    pub cluster: String,
    /// The id of the network of Pods.
    pub(super) network: String,
    /// Where Pods find this machine.
    pub address: Ipv4Addr,
    /// The name of the node, if Compose numbers the agents.
    pub node_name: Option<String>,
    /// How many CPUs it has to give.
    pub(super) cpus: i64,
    /// How it confines containers: `name=seccomp,profile=default`, `name=apparmor`.
    pub(super) security_options: Vec<String>,
}

/// Why there is no engine to work with.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// Nobody listens.
    #[error("nothing answers at {socket}")]
    Silent {
        /// Where.
        socket: String,
    },
    /// It answers, and refuses.
    #[error("the engine refuses")]
    Refuses(#[from] Error),
}

impl Engine {
    /// Meets the engine, finds the agent's own place in it, and makes the network of Pods if need be.
    ///
    /// # Errors
    /// When nobody answers in time, or answers no.
    pub async fn connect(settings: &Settings) -> Result<Self, Unusable> {
        let client = client(settings).await?;
        let own = own(&client).await;
        let cluster = [&settings.cluster, &own.project, DEFAULT]
            .into_iter()
            .find(|name| !name.is_empty())
            .map(ToOwned::to_owned);
        let (network, address) = match (settings.network.as_str(), own.pods) {
            ("", Some((network, address))) => (network, address),
            ("", None) => network(&client, DEFAULT).await?,
            (named, _) => network(&client, named).await?,
        };
        let info = client.info().await?;
        Ok(Self {
            client,
            cluster: cluster.unwrap_or_default(),
            network,
            address,
            node_name: own.number.map(|number| format!("node-{number}")),
            cpus: info.ncpu.unwrap_or(1),
            security_options: info.security_options.unwrap_or_default(),
        })
    }

    /// Does it confine containers by `seccomp`, or by `apparmor`?
    pub(super) fn confines_by(&self, name: &str) -> bool {
        let named = |option: &String| option.split(',').any(|part| part == format!("name={name}"));
        self.security_options.iter().any(named)
    }
}

/// A client of the engine, which has answered once.
pub async fn client(settings: &Settings) -> Result<Docker, Unusable> {
    let socket = settings.socket.display().to_string();
    let silent = |_| Unusable::Silent {
        socket: socket.clone(),
    };
    let client = Docker::connect_with_unix(&socket, CALL, API_DEFAULT_VERSION).map_err(silent)?;
    match timeout(ANSWER, client.negotiate_version()).await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(_)) | Err(_) => Err(Unusable::Silent { socket }),
    }
}

/// The agent's own container, as far as it is one.
#[derive(Default)]
struct Own {
    project: String,
    number: Option<String>,
    pods: Option<(String, Ipv4Addr)>,
}

async fn own(client: &Docker) -> Own {
    let Some(container) = own_container(client).await else {
        return Own::default();
    };
    let labels = container
        .config
        .as_ref()
        .and_then(|config| config.labels.clone());
    let mut labels = labels.unwrap_or_default();
    let project = labels.remove(COMPOSE_PROJECT).unwrap_or_default();
    Own {
        number: labels.remove("com.docker.compose.container-number"),
        pods: pods_network(client, &project).await,
        project,
    }
}

/// The cluster that the agent's own Compose project is, or the usual one.
pub async fn own_cluster(client: &Docker) -> String {
    match own(client).await.project {
        none if none.is_empty() => DEFAULT.to_owned(),
        project => project,
    }
}

/// A container's host name is the beginning of its id, unless somebody chose another.
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

/// The network of Pods of a Compose project. The agent need not be in it, and better is not: what it listens to is none
/// of the Pods' business.
async fn pods_network(client: &Docker, project: &str) -> Option<(String, Ipv4Addr)> {
    if project.is_empty() {
        return None;
    }
    let options = ListNetworksOptionsBuilder::default()
        .filters(&filter(&[
            (COMPOSE_PROJECT, project),
            (COMPOSE_NETWORK, PODS),
        ]))
        .build();
    let found = client.list_networks(Some(options)).await.ok()?;
    let id = found.into_iter().filter_map(|network| network.id).min()?;
    with_address(client, id).await.ok()
}

/// The network of this name, made if there is none, and its own address.
async fn network(client: &Docker, name: &str) -> Result<(String, Ipv4Addr), Error> {
    if named(client, name).await?.is_none() {
        let request = NetworkCreateRequest {
            name: name.to_owned(),
            driver: Some("bridge".to_owned()),
            labels: Some(HashMap::from([(
                "setpoint.dev/network".to_owned(),
                PODS.to_owned(),
            )])),
            ..NetworkCreateRequest::default()
        };
        match client.create_network(request).await {
            Ok(_) => {}
            // An engine that has each name only once: another agent was quicker.
            Err(Error::DockerResponseServerError {
                status_code: 409, ..
            }) => {}
            Err(error) => return Err(error),
        }
    }
    let id = named(client, name).await?.unwrap_or_default();
    with_address(client, id).await
}

/// A network, and where this machine is in it.
async fn with_address(client: &Docker, id: String) -> Result<(String, Ipv4Addr), Error> {
    let network = client.inspect_network(&id, None).await?;
    let address = gateway(&network).unwrap_or(Ipv4Addr::LOCALHOST);
    Ok((id, address))
}

/// Older engines let two agents make networks of one name at once: all take the one with the smallest id.
async fn named(client: &Docker, name: &str) -> Result<Option<String>, Error> {
    let filters = HashMap::from([("name", vec![name])]);
    let options = ListNetworksOptionsBuilder::default()
        .filters(&filters)
        .build();
    let found = client.list_networks(Some(options)).await?.into_iter();
    let exact = found.filter(|network| network.name.as_deref() == Some(name));
    Ok(exact.filter_map(|network| network.id).min())
}

fn gateway(network: &NetworkInspect) -> Option<Ipv4Addr> {
    let configs = network.ipam.as_ref()?.config.as_ref()?;
    let gateways = configs.iter().filter_map(|config| config.gateway.as_ref());
    gateways.filter_map(|text| text.parse().ok()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks F21: an agent puts Pods into a network that it is not in itself.
    #[tokio::test]
    async fn the_network_of_pods_is_found_by_what_compose_says_of_it() {
        let Ok(client) = client(&Settings::default()).await else {
            eprintln!("SKIPPED: no Docker engine answers");
            return;
        };
        let project = format!("setpoint-test-engine-{}", std::process::id());
        let request = |name: &str| NetworkCreateRequest {
            name: format!("{project}_{name}"),
            driver: Some("bridge".to_owned()),
            labels: Some(
                [(COMPOSE_PROJECT, project.as_str()), (COMPOSE_NETWORK, name)]
                    .map(|(label, value)| (label.to_owned(), value.to_owned()))
                    .into(),
            ),
            ..NetworkCreateRequest::default()
        };
        let mut made = Vec::new();
        for name in ["control", PODS] {
            made.push(client.create_network(request(name)).await.unwrap().id);
        }
        let found = pods_network(&client, &project).await;
        for id in &made {
            client.remove_network(id).await.unwrap();
        }
        let (id, address) = found.unwrap();
        assert_eq!(id, made[1]);
        assert!(!address.is_loopback() && !address.is_unspecified());
        assert_eq!(pods_network(&client, &project).await, None);
        assert_eq!(pods_network(&client, "").await, None);
    }
}
