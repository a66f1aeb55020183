//! A part of the control plane that joins: a gateway, a replica of the controllers, or a member of etcd.
//!
//! ```text
//! discovery, review    as for an agent
//! claim                the CAs with their keys, and where the cluster is; nobody else gets them by the token
//! member               for etcd, a learner, which votes once it has caught up
//! processes            start, with certificates by the CAs and the process that renews them, and are ready
//! ```
//! One that does not start leaves nothing behind but its log. The token is used up.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};

use anyhow::{Context as _, bail};
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::claim::Claim;
use super::{Target, member, network, review};
use crate::converge::Plan;
use crate::down::stop;
use crate::launcher::network::check_overlap;
use crate::launcher::{Component, Joining, LOOPBACK, StateDir, program, topology};
use crate::token::{CertificateKey, Handover};

/// The options of `setpoint join gateway`, `controller` and `etcd`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    pub(super) target: Target,
    /// The key of what the token hands over, 64 hexadecimal digits
    #[arg(long, value_name = "KEY")]
    certificate_key: CertificateKey,
    /// Address of this machine for the others of the cluster [default: that by which it reaches SERVER]
    #[arg(long, value_name = "IP")]
    address: Option<Ipv4Addr>,
}

/// Joins, and waits until all processes are ready.
///
/// # Errors
/// The reason for which it did not.
pub async fn join(state_dir: &StateDir, kind: Joining, options: &Options) -> anyhow::Result<()> {
    let _lock = state_dir.lock()?;
    check_place(state_dir, kind)?;
    let target = &options.target;
    let (gateway, cluster) = target.discover().await?;
    review::check(&gateway, &cluster, &target.token, kind).await?;
    let machine = match options.address {
        Some(address) => address,
        None => network::local_address(&gateway)?,
    };
    let claim = Claim {
        gateway: &gateway,
        cluster: &cluster,
        token: &target.token,
    };
    let Handover { keys, plane } = claim.read(kind, &options.certificate_key).await?;
    let component = Component::new(kind, machine, plane, target.token.id());
    check_overlap(&component.plane.spec.network.ranges()?)?;
    check_programs(state_dir, &component)?;
    check_ports(&component)?;
    // From here on, a signal does not end this half-way.
    let _signals = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    claim.take().await?;
    // The record first: with the CAs alone, this would be the state directory of another cluster with them.
    component.write(state_dir)?;
    let started = async {
        state_dir.pki().install(&keys)?;
        println!("The keys of the CAs are on this machine, and the token is used up");
        start(state_dir, component.clone()).await
    };
    let Err(error) = started.await else {
        return Ok(());
    };
    match remove(state_dir, &component).await {
        Ok(()) => Err(error),
        Err(second) => Err(error.context(format!("{second:#}"))),
    }
}

/// Fails if the state directory has a cluster, or such a part, already.
fn check_place(state_dir: &StateDir, kind: Joining) -> anyhow::Result<()> {
    let place = state_dir.shown(state_dir.state());
    if state_dir.has_cluster() {
        bail!("{place} has a cluster of its own: choose another --state");
    }
    if Component::read(state_dir, kind)?.is_some() {
        let noun = kind.noun();
        bail!("{noun} has joined in {place} already: `setpoint up` starts it again");
    }
    if kind == Joining::Etcd && state_dir.etcd().exists() {
        bail!("{place} has data of etcd from before: choose another --state, or delete them");
    }
    Ok(())
}

fn check_programs(state_dir: &StateDir, component: &Component) -> anyhow::Result<()> {
    let stages = topology::components(state_dir, std::slice::from_ref(component));
    let mut services = stages.iter().flatten().map(|process| process.service);
    services.try_for_each(|service| program(service).map(drop))
}

/// Fails if this machine lacks the address, or another process has a port.
fn check_ports(component: &Component) -> anyhow::Result<()> {
    let (machine, spec) = (IpAddr::V4(component.machine), &component.plane.spec);
    let loopback: IpAddr = LOOPBACK.parse()?;
    let (both, reached) = match component.kind {
        Joining::Gateway => (spec.gateways.first().copied(), None),
        Joining::Etcd => (Some(spec.etcd), Some(spec.etcd_peers())),
        Joining::Controller => (None, spec.dns.first().copied()),
        Joining::Agent => (None, None),
    };
    check_port(machine, 0)?;
    if let Some(port) = both {
        check_port(loopback, port)?;
        check_port(machine, port)?;
    }
    reached.map_or(Ok(()), |port| check_port(machine, port))
}

fn check_port(ip: IpAddr, port: u16) -> anyhow::Result<()> {
    match TcpListener::bind((ip, port)) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            bail!("{ip}:{port} is taken by another process of this machine")
        }
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            bail!("this machine does not have the address {ip}: --address names one of its own")
        }
        Err(error) => Err(error).with_context(|| format!("cannot listen at {ip}:{port}")),
    }
}

async fn start(state_dir: &StateDir, component: Component) -> anyhow::Result<()> {
    match component.kind {
        Joining::Etcd => member::join(state_dir, component).await?,
        _ => start_all(state_dir).await?,
    }
    if let Some(gateway) = Component::read(state_dir, Joining::Gateway)? {
        state_dir.write_kubeconfig(gateway.plane.spec.gateways[0])?;
    }
    Ok(())
}

/// Starts the parts of a state directory that do not run, with the certificates that they need, and restarts those with
/// other arguments.
///
/// # Errors
/// If one does not get ready.
pub async fn start_all(state_dir: &StateDir) -> anyhow::Result<()> {
    let stages = topology::components(state_dir, &Component::all(state_dir)?);
    state_dir.pki().ensure(stages.iter().flatten())?;
    Plan::compute(state_dir, &stages).execute(state_dir).await
}

/// Stops what has started of a part, and removes it.
async fn remove(state_dir: &StateDir, component: &Component) -> anyhow::Result<()> {
    component.remove(state_dir)?;
    let own = topology::components(state_dir, std::slice::from_ref(component));
    let others = topology::components(state_dir, &Component::all(state_dir)?);
    let is_last = !state_dir.components().exists();
    let mut names: Vec<_> = own.into_iter().flatten().map(|one| one.name).collect();
    names.retain(|name| is_last || others.iter().flatten().all(|other| other.name != *name));
    stop(state_dir, &names).await;
    if component.kind == Joining::Etcd && state_dir.etcd().exists() {
        let data = state_dir.etcd();
        fs::remove_dir_all(&data).with_context(|| format!("cannot delete {}", data.display()))?;
    }
    match is_last {
        true => state_dir.pki().remove(),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_another_machine_and_a_taken_port_are_told() {
        let taken = TcpListener::bind((LOOPBACK, 0)).unwrap();
        let at = taken.local_addr().unwrap();
        let why = check_port(at.ip(), at.port()).unwrap_err().to_string();
        assert!(
            why.ends_with("is taken by another process of this machine"),
            "{why}"
        );
        drop(taken);
        // Of the range for documentation.
        let other = Ipv4Addr::new(192, 0, 2, 77).into();
        let why = check_port(other, 0).unwrap_err().to_string();
        assert!(
            why.starts_with("this machine does not have the address 192.0.2.77"),
            "{why}"
        );
    }

    #[test]
    fn a_state_directory_has_one_part_of_a_kind_and_no_cluster_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        let _held = state_dir.lock().unwrap();
        assert!(check_place(&state_dir, Joining::Etcd).is_ok());
        fs::create_dir(state_dir.etcd()).unwrap();
        let why = check_place(&state_dir, Joining::Etcd)
            .unwrap_err()
            .to_string();
        assert!(why.contains("has data of etcd from before"), "{why}");
        assert!(check_place(&state_dir, Joining::Gateway).is_ok());
        state_dir.pki().ensure([]).unwrap();
        let why = check_place(&state_dir, Joining::Gateway)
            .unwrap_err()
            .to_string();
        assert!(why.contains("has a cluster of its own"), "{why}");
    }
}
