//! Checks that a machine has the runtime and the programs of a node, before its token is used, as kubeadm does.

use std::env;
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::launcher::{NodeNetwork, PodNetwork};

/// The socket of the agent's default runtime.
const CONTAINERD: &str = "unix:///run/containerd/containerd.sock";
/// The scheme of sockets.
const SCHEME: &str = "unix://";
/// The programs of the proxy and of the commands that start and stop it, with their packages of Debian.
const OF_PROXIES: [(&str, &str); 3] = [
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("conntrack", "conntrack"),
];
/// The program of the CNI plug-ins `portmap` and `firewall`.
const OF_PLUGINS: (&str, &str) = ("iptables", "iptables");
/// The directories in which CNI plug-ins are: that of Debian, and that of others.
const PLUGINS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

/// Fails if no runtime listens at the endpoint, or at the agent's default.
///
/// # Errors
/// Where nobody listens, and what to install.
pub fn check_runtime(endpoint: Option<&str>) -> anyhow::Result<()> {
    let endpoint = endpoint.unwrap_or(CONTAINERD);
    let path = endpoint.strip_prefix(SCHEME).unwrap_or(endpoint);
    let connected = UnixStream::connect(path).map(drop);
    connected.with_context(|| {
        let advice = match endpoint {
            CONTAINERD => " (Debian: apt-get install containerd)",
            _ => "",
        };
        format!("container runtime is not running at {endpoint}{advice}")
    })
}

/// Fails if a program is missing that the network of a node needs. Says so if there seem to be no CNI plug-ins: the
/// configuration of the runtime may name another directory.
///
/// # Errors
/// The first that is missing, and its package.
pub fn check_network(network: &NodeNetwork) -> anyhow::Result<()> {
    let is_routed = network.pods == PodNetwork::Routes;
    let programs = OF_PROXIES.into_iter();
    let programs = programs.chain(is_routed.then_some(OF_PLUGINS));
    for (program, package) in programs {
        if !is_in_path(program) {
            bail!("{program} not found in system path (Debian: apt-get install {package})");
        }
    }
    let mut directories = PLUGINS.iter();
    let has_plugins = directories.any(|directory| Path::new(directory).join("bridge").exists());
    if is_routed && !has_plugins {
        eprintln!(
            "There are no CNI plug-ins in {} (Debian: apt-get install containernetworking-plugins)",
            PLUGINS.join(" and ")
        );
    }
    Ok(())
}

fn is_in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_runtime_that_does_not_run_is_told_with_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("runtime.sock");
        let endpoint = format!("{SCHEME}{}", socket.display());
        let why = check_runtime(Some(&endpoint)).unwrap_err().to_string();
        assert_eq!(
            why,
            format!("container runtime is not running at {endpoint}")
        );
        let _listener = UnixListener::bind(&socket).unwrap();
        assert!(check_runtime(Some(&endpoint)).is_ok());
        assert!(check_runtime(socket.to_str()).is_ok());
    }

    #[test]
    fn programs_are_found_in_the_path() {
        assert!(is_in_path("sh"));
        assert!(!is_in_path("no-such-program"));
    }
}
