//! The addresses of the API and of the cluster's DNS for Pods, as the settings and the network of Pods have it.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Context as _;
use futures::FutureExt as _;
use setpoint_runtime::Kind;
use setpoint_runtime::docker::Engine;
use tokio::net::lookup_host;

use crate::pod::addresses::Lookup;
use crate::pod::api_server::ApiServer;
use crate::pod::cluster_dns::Resolver;
use crate::settings::Settings;

/// Returns the API as Pods reach it.
///
/// # Errors
/// If the settings have no address.
pub fn of(settings: &Settings, engine: Option<&Engine>) -> anyhow::Result<ApiServer> {
    // A network of CNI has no address that the agent knows; Pods in it reach that of the node.
    let node = settings.node_ip().filter(|_| settings.runtime == Kind::Cri);
    let machine = engine.map(|engine| engine.address).or(node);
    let place = settings.pod_api_server(machine);
    let place = place.context("the setting gateway.address has no host")?;
    Ok(ApiServer::new(place, lookup(engine)))
}

/// Returns the cluster's DNS as Pods reach it.
pub fn resolver(settings: &Settings, engine: Option<&Engine>) -> Resolver {
    let domain = settings.cluster_domain.trim_end_matches('.').to_owned();
    Resolver::new(settings.cluster_dns.clone(), domain, lookup(engine))
}

fn lookup(engine: Option<&Engine>) -> Lookup {
    match engine.filter(|engine| engine.is_isolated()) {
        Some(engine) => of_service(engine.clone()),
        None => of_machine(),
    }
}

/// Looks names up as this machine does.
fn of_machine() -> Lookup {
    Arc::new(|name| {
        async move {
            let found = lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    })
}

/// Looks names up as those of services of Compose, whose containers may have other addresses in the network of Pods
/// than in that of the agent.
fn of_service(engine: Engine) -> Lookup {
    Arc::new(move |name| {
        let engine = engine.clone();
        async move {
            let found = engine.addresses_of(&name).await.map_err(io::Error::other)?;
            Ok(found.into_iter().map(IpAddr::from).collect())
        }
        .boxed()
    })
}
