//! The control plane of a cluster of several machines, as it is now: the members of etcd and the gateways.

use anyhow::Context as _;
use setpoint_controller::Client;
use setpoint_controller::client::ListOptions;
use setpoint_model::{Key, replicas};
use setpoint_proto::Reason;
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::Endpoints;
use setpoint_store::etcd::Settings;
use setpoint_store::etcd::membership::{Member, Membership, clients_of};

use crate::advice::advised;
use crate::connection::Connection;
use crate::launcher::{ClusterSpec, Component, ControlPlane, StateDir, known_members, topology};

/// Returns what the state directory knows of the control plane that this machine is a part of.
///
/// # Errors
/// If no cluster runs here and no part has joined one, or it is a cluster of one machine.
pub fn recorded(state_dir: &StateDir) -> anyhow::Result<ControlPlane> {
    if let Some(component) = Component::all(state_dir)?.into_iter().next() {
        return Ok(component.plane);
    }
    let Some(spec) = ClusterSpec::load(state_dir)? else {
        let place = state_dir.shown(state_dir.state());
        return Err(advised(
            format!("no cluster runs in {place}"),
            "setpoint up --machine IP",
        ));
    };
    if spec.network.machine().is_none() {
        return Err(advised(
            "the cluster was started for this machine alone: it takes in agents, and nothing else",
            "setpoint down, and setpoint up --machine IP, for a cluster of several machines",
        ));
    }
    Ok(ControlPlane {
        server: spec.server(),
        etcd: known_members::endpoints(state_dir, &spec),
        gateways: vec![spec.server()],
        spec,
    })
}

/// Returns the control plane as etcd and a gateway know it now.
///
/// # Errors
/// As [`recorded`], or if one of them does not answer.
pub async fn current(connection: &Connection) -> anyhow::Result<ControlPlane> {
    let plane = recorded(&connection.state_dir)?;
    let members = members(&connection.state_dir, &plane).await?;
    let gateways = gateways(&connection.gateway()?).await?;
    Ok(ControlPlane {
        etcd: clients_of(&members),
        gateways: match gateways.is_empty() {
            true => plane.gateways,
            false => gateways,
        },
        ..plane
    })
}

/// Returns the connection to the members of etcd.
///
/// # Errors
/// If there is no certificate for it.
pub fn etcd(state_dir: &StateDir, plane: &ControlPlane) -> anyhow::Result<Settings> {
    Ok(Settings {
        endpoints: plane.etcd.clone(),
        credentials: Some(state_dir.pki().issue_for_etcd()?),
        ..Settings::default()
    })
}

/// Connects to a member of etcd.
///
/// # Errors
/// If none answers.
pub async fn membership(state_dir: &StateDir, plane: &ControlPlane) -> anyhow::Result<Membership> {
    Ok(Membership::connect(&etcd(state_dir, plane)?).await?)
}

/// Returns the members of etcd, as one of them knows them, and keeps what they are for the time when that of this
/// machine is dead.
///
/// # Errors
/// If none answers, or the file system refuses to keep them.
pub async fn members(state_dir: &StateDir, plane: &ControlPlane) -> anyhow::Result<Vec<Member>> {
    let members = membership(state_dir, plane).await?.list().await?;
    known_members::write(state_dir, &members)?;
    Ok(members)
}

/// Writes into the records of the parts that have joined which members of etcd there are now, and gateways that have
/// joined since. Gateways that do not live now stay: they may come back.
///
/// # Errors
/// If they cannot be read, or a record cannot be written.
pub async fn refresh(state_dir: &StateDir) -> anyhow::Result<()> {
    let now = current(&Connection::new(state_dir.clone(), None)).await?;
    for mut component in Component::all(state_dir)? {
        component.plane.etcd.clone_from(&now.etcd);
        let known = &mut component.plane.gateways;
        let new = now.gateways.iter().filter(|url| !known.contains(url));
        let new: Vec<_> = new.cloned().collect();
        known.extend(new);
        component.write(state_dir)?;
    }
    Ok(())
}

/// Returns the names of the parts of the control plane on other machines than this one, on which the cluster was
/// started: members of etcd, gateways that live, and controllers that have announced themselves.
///
/// # Errors
/// If etcd or a gateway does not answer.
pub async fn elsewhere(state_dir: &StateDir, spec: &ClusterSpec) -> anyhow::Result<Vec<String>> {
    let plane = recorded(state_dir)?;
    let members = members(state_dir, &plane).await?;
    let own = topology::member_name(spec);
    let members = members.into_iter().filter(|member| member.name != own);
    let members = members.map(|member| match member.name.is_empty() {
        true => format!("etcd {:016x}", member.id),
        false => member.name,
    });
    let client = Connection::new(state_dir.clone(), None).gateway()?;
    let own_ip = spec.network.machine().map(|ip| format!("https://{ip}:"));
    let gateways = gateways(&client).await?;
    let gateways = gateways.into_iter().filter(|url| {
        let own = own_ip.as_ref();
        own.is_none_or(|own| !url.starts_with(own))
    });
    let replicas = ListOptions {
        namespace: replicas::NAMESPACE.to_owned(),
        ..ListOptions::default()
    };
    let leases = client.list::<Lease>(&replicas).await;
    let leases = leases.context("the replicas of controllers cannot be read")?;
    let holders = leases.items.into_iter().filter_map(|lease| {
        let holder = lease.spec.holder_identity?;
        topology::is_of_machine(&holder).then_some(holder)
    });
    Ok(members.chain(gateways).chain(holders).collect())
}

/// Returns the URLs of the gateways that live, as the endpoints of the Service of the API have them.
///
/// # Errors
/// If they cannot be read.
pub async fn gateways(client: &Client) -> anyhow::Result<Vec<String>> {
    let found = client
        .get::<Endpoints>(&Key::new("default", "kubernetes"))
        .await;
    match found {
        Ok(endpoints) => Ok(urls(&endpoints)),
        Err(error) if error.reason == Reason::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).context("the addresses of the gateways cannot be read"),
    }
}

fn urls(endpoints: &Endpoints) -> Vec<String> {
    let subsets = endpoints.subsets.iter();
    let urls = subsets.flat_map(|subset| {
        let ports = subset.ports.iter();
        ports.flat_map(|port| {
            let addresses = subset.addresses.iter();
            addresses.map(|address| format!("https://{}:{}", address.ip, port.port))
        })
    });
    urls.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn gateways_are_reached_at_the_endpoints_of_the_service_of_the_api() {
        let address = |ip: &str| json!({ "ip": ip });
        let subset = |addresses: &[&str], port: u16| {
            let addresses: Vec<_> = addresses.iter().map(|ip| address(ip)).collect();
            json!({ "addresses": addresses, "ports": [{ "port": port }] })
        };
        let subsets = [
            subset(&["10.0.0.1", "10.0.0.2"], 6443),
            subset(&["10.0.0.1"], 6444),
        ];
        let endpoints = json!({ "metadata": { "name": "kubernetes" }, "subsets": subsets });
        let endpoints: Endpoints = serde_json::from_value(endpoints).unwrap();
        assert_eq!(
            urls(&endpoints),
            [
                "https://10.0.0.1:6443",
                "https://10.0.0.2:6443",
                "https://10.0.0.1:6444"
            ]
        );
    }

    #[test]
    fn a_cluster_of_one_machine_takes_in_agents_only() {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        let _held = state_dir.lock().unwrap();
        let why = recorded(&state_dir).unwrap_err().to_string();
        assert_eq!(why, "no cluster runs in .setpoint");
        ClusterSpec::default().save(&state_dir).unwrap();
        let why = recorded(&state_dir).unwrap_err().to_string();
        assert!(
            why.starts_with("the cluster was started for this machine alone"),
            "{why}"
        );
    }
}
