//! The process of a member of etcd.

use super::{ProcessSpec, components::in_names};
use crate::launcher::cluster_spec::{ClusterSpec, address, addresses};
use crate::launcher::identity::Identity;
use crate::launcher::state_dir::StateDir;

/// The socket of etcd's only member for others, in its working directory. A port would take raft messages, which are
/// writes to the store, from any process of this machine.
pub(super) const PEERS: &str = "unix://etcd-peers:0";
/// Size limit of etcd's database in bytes (4 GiB): half of the maximum that etcd recommends.
const QUOTA: &str = "4294967296";
/// Number of old revisions that etcd keeps, for continued lists and resumed watches.
const HISTORY: &str = "100000";

/// Returns the name of the member of etcd on the machine of this spec.
pub fn name(spec: &ClusterSpec) -> String {
    match spec.network.machine() {
        Some(machine) => format!("etcd-{}", in_names(machine)),
        None => "setpoint".to_owned(),
    }
}

/// Returns the URL at which other members reach it.
pub fn peer_url(spec: &ClusterSpec) -> String {
    match spec.network.machine() {
        Some(machine) => addresses(&machine.to_string(), &[spec.etcd_peers()]),
        None => PEERS.to_owned(),
    }
}

/// Returns a member of etcd with the port of `spec`. It serves clients, and other members, with a certificate by its
/// own CA only. `initial_cluster` are the members when it starts for the first time.
pub(super) fn process(
    state_dir: &StateDir,
    spec: &ClusterSpec,
    process: ProcessSpec,
    initial_cluster: &str,
) -> ProcessSpec {
    let machine = spec.network.machine().map(|machine| machine.to_string());
    let local = address(spec.etcd);
    let reached = machine.as_ref().map(|ip| addresses(ip, &[spec.etcd]));
    let advertised = reached.clone().unwrap_or_else(|| local.clone());
    let listen: Vec<_> = [local].into_iter().chain(reached).collect();
    let peer = peer_url(spec);
    let mut etcd = process.with_port(spec.etcd);
    // It is a client, too: its gateway of HTTP calls itself.
    let identity = Identity::etcd().replica(etcd.service, &etcd.name);
    let is_reached = machine.is_some();
    etcd.identity = Some(identity.reached_at(machine));
    let files = state_dir.pki().files(&etcd.name);
    let [ca, certificate, key] = [&files.ca_file, &files.certificate_file, &files.key_file];
    let peers = [
        ("--peer-trusted-ca-file", ca),
        ("--peer-cert-file", certificate),
        ("--peer-key-file", key),
    ];
    let peers = peers.map(|(flag, file)| [flag.to_owned(), file.display().to_string()]);
    let peers = peers.into_iter().flatten();
    // A member that some of the others do not reach must not depose their leader again and again.
    let flags = ["--peer-client-cert-auth", "--pre-vote"].map(str::to_owned);
    let peers = peers.chain(flags);
    etcd.arg("--name", name(spec))
        .arg("--data-dir", state_dir.etcd().display())
        .arg("--listen-client-urls", listen.join(","))
        .arg("--advertise-client-urls", advertised)
        .args(["--client-cert-auth".to_owned()])
        .arg("--trusted-ca-file", ca.display())
        .arg("--cert-file", certificate.display())
        .arg("--key-file", key.display())
        .arg("--listen-peer-urls", &peer)
        .arg("--initial-advertise-peer-urls", &peer)
        .arg("--initial-cluster", initial_cluster)
        .args(peers.filter(|_| is_reached))
        .arg("--quota-backend-bytes", QUOTA)
        .arg("--auto-compaction-mode", "revision")
        .arg("--auto-compaction-retention", HISTORY)
        .arg("--logger", "zap")
        .arg("--log-level", "warn")
}
