//! The gateways of a cluster.

use super::{ProcessSpec, loopback_range};
use crate::launcher::cluster_spec::ClusterSpec;
use crate::launcher::identity::{API_NAMES, Identity};
use crate::launcher::known_members;
use crate::launcher::state_dir::StateDir;

pub(super) fn gateways(
    state_dir: &StateDir,
    spec: &ClusterSpec,
) -> impl Iterator<Item = ProcessSpec> {
    let etcd = known_members::endpoints(state_dir, spec).join(",");
    (0..spec.gateways.len()).map(move |index| gateway(state_dir, spec, index, &etcd))
}

/// Returns `gateway-<index>` over the etcd at these addresses.
///
/// # Panics
/// If `spec` has no such gateway.
pub fn gateway(state_dir: &StateDir, spec: &ClusterSpec, index: usize, etcd: &str) -> ProcessSpec {
    let process = ProcessSpec::bare("gateway", index).with_port(spec.gateways[index]);
    gateway_process(state_dir, spec, process, &spec.server(), etcd)
}

/// Returns a gateway over the etcd at these addresses, which publishes the URL `server` for clients.
pub(super) fn gateway_process(
    state_dir: &StateDir,
    spec: &ClusterSpec,
    gateway: ProcessSpec,
    server: &str,
    etcd: &str,
) -> ProcessSpec {
    let network = spec.network;
    let reached = network.gateway().map(|ip| ip.to_string());
    let listen = spec.listen.iter().map(ToString::to_string);
    let listen: Vec<_> = listen.chain(reached.clone()).collect();
    let identity = Identity::service("gateway").api(&spec.tls_sans);
    let identity = identity.reached_at(&listen);
    let identity = identity.reached_at([network.api_service().to_string()]);
    // Members of etcd join a cluster of several machines, and one on the machine of a gateway may die alone.
    let follows_members = network.machine().map(|_| "--etcd-follow-members=true");
    let advertised = reached.map(|ip| ["--advertise".to_owned(), ip]);
    let further = ["--listen-also".to_owned(), listen.join(",")];
    let further = (!listen.is_empty()).then_some(further);
    let gateway = gateway.identified(state_dir, identity);
    let files = state_dir.pki().etcd_client(&gateway.name);
    let hosts = API_NAMES
        .into_iter()
        .chain(["localhost"])
        .map(str::to_owned);
    let hosts: Vec<_> = hosts.chain(spec.tls_sans.clone()).collect();
    gateway
        .args(further.into_iter().flatten())
        .args(advertised.into_iter().flatten())
        .arg("--service-cluster-ip-range", network.services())
        .arg("--service-node-port-range", network.node_ports())
        .args(loopback_range("--endpoint-loopback-range", network))
        .arg("--allowed-hosts", hosts.join(","))
        .arg("--cluster-info-server", server)
        .arg("--etcd-endpoints", etcd)
        .args(follows_members.map(str::to_owned))
        .arg("--etcd-ca-file", files.ca_file.display())
        .arg("--etcd-certificate-file", files.certificate_file.display())
        .arg("--etcd-key-file", files.key_file.display())
}
