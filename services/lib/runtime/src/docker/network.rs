//! The network of Pods of an engine.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::{Network, NetworkCreateRequest, NetworkInspect};
use bollard::query_parameters::ListNetworksOptionsBuilder;
use jiff::Timestamp;
use tokio::time::sleep;

use super::engine::COMPOSE_PROJECT;
use super::identity::filter;

/// The time until a network that another agent creates at the same time is listed.
const CONCURRENT_CREATION: Duration = Duration::from_secs(1);
/// Name of the Pod network within a Compose project.
const PODS_NETWORK: &str = "pods";
/// The label of that name.
const COMPOSE_NETWORK: &str = "com.docker.compose.network";

/// Returns the Pod network of a Compose project and its address. The agent itself should not be in that network, so
/// that Pods cannot reach its ports.
pub(super) async fn of_project(client: &Docker, project: &str) -> Option<(String, Ipv4Addr)> {
    if project.is_empty() {
        return None;
    }
    let options = ListNetworksOptionsBuilder::default()
        .filters(&filter(&[
            (COMPOSE_PROJECT, project),
            (COMPOSE_NETWORK, PODS_NETWORK),
        ]))
        .build();
    let found = client.list_networks(Some(options)).await.ok()?;
    let id = found.into_iter().filter_map(|network| network.id).min()?;
    with_address(client, id).await.ok()
}

/// Returns the id and the address of the network of this name; creates it if it does not exist.
///
/// Engines before version 25 let agents that start at the same time create several: all choose the oldest.
pub(super) async fn named(client: &Docker, name: &str) -> Result<(String, Ipv4Addr), Error> {
    let found = oldest(client, name).await?;
    let created = match found {
        Some(_) => None,
        None => create_network(client, name).await?,
    };
    if found.is_none_or(|network| is_new(&network)) {
        sleep(CONCURRENT_CREATION).await;
    }
    let chosen = oldest(client, name).await?;
    let id = chosen.and_then(|network| network.id).unwrap_or_default();
    if let Some(created) = created.filter(|created| *created != id)
        && let Err(error) = client.remove_network(&created).await
    {
        tracing::warn!(%error, network = created, "could not remove a network that no agent uses");
    }
    with_address(client, id).await
}

/// Creates the network of this name. Returns its id; `None` if another agent did so and the engine enforces unique
/// names.
async fn create_network(client: &Docker, name: &str) -> Result<Option<String>, Error> {
    let request = NetworkCreateRequest {
        name: name.to_owned(),
        driver: Some("bridge".to_owned()),
        labels: Some(HashMap::from([(
            "setpoint.dev/network".to_owned(),
            PODS_NETWORK.to_owned(),
        )])),
        ..NetworkCreateRequest::default()
    };
    match client.create_network(request).await {
        Ok(created) => Ok(Some(created.id)),
        Err(Error::DockerResponseServerError {
            status_code: 409, ..
        }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns a network with this machine's address in it.
async fn with_address(client: &Docker, id: String) -> Result<(String, Ipv4Addr), Error> {
    let network = client.inspect_network(&id, None).await?;
    let address = gateway_address(&network).unwrap_or(Ipv4Addr::LOCALHOST);
    Ok((id, address))
}

/// Returns the oldest network of this name.
async fn oldest(client: &Docker, name: &str) -> Result<Option<Network>, Error> {
    let all = all_named(client, name).await?;
    Ok(all.min_by_key(|network| (creation(network), network.id.clone())))
}

fn creation(network: &Network) -> Option<Timestamp> {
    network.created.as_deref()?.parse().ok()
}

/// Returns whether an older network that is being created may not be listed yet.
fn is_new(network: &Network) -> bool {
    let age = creation(network).map(|created| Timestamp::now().duration_since(created));
    age.is_some_and(|age| age.as_millis() < CONCURRENT_CREATION.as_millis().cast_signed())
}

async fn all_named(client: &Docker, name: &str) -> Result<impl Iterator<Item = Network>, Error> {
    let filters = HashMap::from([("name", vec![name])]);
    let options = ListNetworksOptionsBuilder::default()
        .filters(&filters)
        .build();
    let found = client.list_networks(Some(options)).await?.into_iter();
    // The engine finds parts of names.
    Ok(found.filter(move |network| network.name.as_deref() == Some(name)))
}

fn gateway_address(network: &NetworkInspect) -> Option<Ipv4Addr> {
    let configs = network.ipam.as_ref()?.config.as_ref()?;
    let gateways = configs.iter().filter_map(|config| config.gateway.as_ref());
    gateways.filter_map(|text| text.parse().ok()).next()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use futures::future::join_all;

    use super::super::engine::client;
    use super::super::settings::Settings;
    use super::*;

    #[tokio::test]
    async fn agents_that_start_at_the_same_time_put_pods_into_one_network() {
        let Ok(client) = client(&Settings::default()).await else {
            eprintln!("SKIPPED: no Docker engine answers");
            return;
        };
        let name = format!("setpoint-test-start-{}", std::process::id());
        let found = join_all((0..6).map(|_| named(&client, &name))).await;
        let again = named(&client, &name).await;
        let left = all_named(&client, &name).await.unwrap();
        let left: Vec<String> = left.filter_map(|network| network.id).collect();
        for id in &left {
            client.remove_network(id).await.unwrap();
        }
        let ids = found.into_iter().chain([again]);
        let ids: BTreeSet<String> = ids.map(|found| found.unwrap().0).collect();
        assert_eq!(ids.len(), 1, "{ids:?}");
        assert_eq!(Vec::from_iter(ids), left);
    }

    /// Checks F21: an agent puts Pods into a network that it is not in itself.
    #[tokio::test]
    async fn the_pod_network_is_found_by_its_compose_labels() {
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
        for name in ["control", PODS_NETWORK] {
            made.push(client.create_network(request(name)).await.unwrap().id);
        }
        let found = of_project(&client, &project).await;
        for id in &made {
            client.remove_network(id).await.unwrap();
        }
        let (id, address) = found.unwrap();
        assert_eq!(id, made[1]);
        assert!(!address.is_loopback() && !address.is_unspecified());
        assert_eq!(of_project(&client, &project).await, None);
        assert_eq!(of_project(&client, "").await, None);
    }
}
