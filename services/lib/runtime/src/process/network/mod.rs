//! Networks of Pods: each Pod has a network namespace, with an interface on the bridge of its cluster.
//!
//! ```text
//! Pod: eth0 10.244.1.2/32, default route to the node ═veth═ bridge 10.255.0.2 (the node) ─ machine
//! ```
//! Packets between Pods are routed by the machine, and never cross the bridge alone, so that rules of the machine see
//! them all. What leaves by another interface has the source address of that. Host ports are those of the address of
//! the node, whose table of nftables is replaced as a whole when the agent starts.

mod namespace;
mod programs;
mod table;

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_model::hash::fnv32a;

use self::programs::run;
use super::folder;
use crate::SandboxConfig;

pub use self::namespace::Namespace;

/// File with the namespace of a Pod, in its directory, and with the name of the table, in the directory of the node.
const FILE: &str = "network.json";
/// Time that each program may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Settings of the process runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Bridge that Pods are connected to, each with a network namespace and an address of the node's `spec.podCIDR`;
    /// empty if Pods share the network of the machine, at addresses of the loopback.
    ///
    /// Takes root, `ip` and `nft`. The address `node_ip` must be on the bridge.
    pub bridge: String,
    /// Commands in place of images, such as `nginx=busybox httpd -f -p 80`, for containers that name none; of an image
    /// with a tag, or of all tags. A command with spaces in its words is a list of strings in JSON:
    /// `nginx=["sh", "-c", "sleep 1; exit 3"]`.
    pub images: Vec<String>,
}

/// The network of the Pods of one node.
pub struct Network {
    /// The bridge.
    bridge: String,
    /// The address of the node, at which Pods find the machine.
    node: Ipv4Addr,
    /// The start of the names of namespaces, which is also the name of the table.
    prefix: String,
    /// The directory of the node.
    state: PathBuf,
    /// The addresses of Pods, as `a.b.c.d/n`; `None` until they are known.
    range: Mutex<Option<String>>,
}

impl Network {
    /// Returns the network of the node with this address and the state directory `state`.
    pub fn new(bridge: &str, node: Ipv4Addr, state: &Path) -> Self {
        Self {
            bridge: bridge.to_owned(),
            node,
            prefix: prefix(state),
            state: state.to_owned(),
            range: Mutex::default(),
        }
    }

    /// Returns the reason why Pods cannot be connected yet, in the words of the kubelet and of its network plug-ins.
    ///
    /// # Errors
    /// That reason.
    pub fn ready(&self) -> Result<(), String> {
        match self.range.lock().is_some() {
            true => Ok(()),
            false => Err("node has no podCIDR assigned".to_owned()),
        }
    }

    /// Sets the addresses of Pods, and programs the machine for these and for the host ports of existing Pods.
    pub async fn set_range(&self, range: &str, existing: &[SandboxConfig]) -> io::Result<()> {
        folder::write(&self.state.join(FILE), &self.prefix)?;
        let table = table::whole(&self.prefix, &self.bridge, self.node, range, existing);
        run(&["nft", "-f", "-"], &table).await?;
        let Self { bridge, node, .. } = self;
        let route = format!("route replace {range} dev {bridge} src {node}\n");
        run(&["ip", "-batch", "-"], &route).await?;
        *self.range.lock() = Some(range.to_owned());
        Ok(())
    }

    /// Connects a Pod: replaces its namespace and what is programmed for its host ports.
    pub async fn connect(&self, folder: &Path, config: &SandboxConfig) -> io::Result<()> {
        self.ready().map_err(io::Error::other)?;
        let (namespace, link) = (self.namespace(&config.uid), link(&config.uid));
        self.disconnect(folder, config).await?;
        run(&["ip", "netns", "add", namespace.name()], "").await?;
        folder::write(&folder.join(FILE), &namespace)?;
        let (bridge, node, ip) = (&self.bridge, self.node, config.ip);
        // A kernel that shows packets of bridges to rules of IP passes one that goes back to its Pod on at the bridge.
        let outside = format!(
            "link add {link} type veth peer name eth0 address {} netns {}\nlink set {link} master {bridge} up\n\
             link set {link} type bridge_slave hairpin on\n",
            hardware_address(ip),
            namespace.name()
        );
        run(&["ip", "-batch", "-"], &outside).await?;
        let inside = format!(
            "link set lo up\naddress add {ip}/32 dev eth0\nlink set eth0 up\n\
             route add {node} dev eth0 scope link\nroute add default via {node}\n"
        );
        run(&["ip", "-n", namespace.name(), "-batch", "-"], &inside).await?;
        let parameters = parameters(config);
        namespace
            .inside(move || write_parameters(&parameters))
            .await?;
        let ports = table::add_ports(&self.prefix, self.node, config);
        match ports.is_empty() {
            true => Ok(()),
            false => run(&["nft", "-f", "-"], &ports).await,
        }
    }

    /// Removes what [`Self::connect`] has made, if anything.
    pub async fn disconnect(&self, folder: &Path, config: &SandboxConfig) -> io::Result<()> {
        if of_pod(folder)?.is_none() {
            return Ok(());
        }
        let ports = table::remove_ports(&self.prefix, self.node, config);
        if !ports.is_empty() {
            run(&["nft", "-f", "-"], &ports).await?;
        }
        leave(folder).await
    }

    /// Removes the namespaces of Pods that are not known, for example of directories that someone has deleted.
    pub async fn remove_others(&self, known: impl Fn(&str) -> bool) -> io::Result<()> {
        for namespace in namespace::all(&self.prefix)? {
            let uid = namespace.name().strip_prefix(&self.prefix);
            let uid = uid.and_then(|rest| rest.strip_prefix('-'));
            if !uid.is_some_and(&known) {
                namespace.remove().await?;
            }
        }
        Ok(())
    }

    fn namespace(&self, uid: &str) -> Namespace {
        Namespace::new(format!("{}-{uid}", self.prefix))
    }
}

/// Returns the namespace of the Pod with this directory; `None` if it is in that of the machine.
///
/// # Errors
/// If its file cannot be read.
pub fn of_pod(folder: &Path) -> io::Result<Option<Namespace>> {
    folder::read(&folder.join(FILE))
}

/// Removes the namespace of the Pod with this directory, if it has one. Nothing may run in it.
///
/// # Errors
/// If it cannot be removed.
pub async fn leave(folder: &Path) -> io::Result<()> {
    let Some(namespace) = of_pod(folder)? else {
        return Ok(());
    };
    namespace.remove().await?;
    fs::remove_file(folder.join(FILE))
}

/// Removes the namespaces of the Pods of a state directory, and its table, if it has them. Nothing may run in them.
///
/// # Errors
/// If one of the programs fails.
pub async fn sweep(state: &Path) -> io::Result<()> {
    let Some(prefix) = folder::read::<String>(&state.join(FILE))? else {
        return Ok(());
    };
    for namespace in namespace::all(&prefix)? {
        namespace.remove().await?;
    }
    run(&["nft", "-f", "-"], &table::remove(&prefix)).await?;
    fs::remove_file(state.join(FILE))
}

/// Returns the start of the names of what belongs to a state directory, whose path is absolute.
fn prefix(state: &Path) -> String {
    let state = std::path::absolute(state).unwrap_or_else(|_| state.into());
    format!(
        "setpoint-node-{:08x}",
        fnv32a(state.as_os_str().as_encoded_bytes())
    )
}

/// Returns the name of the machine's end of the link to a Pod. Names of links have at most 15 bytes.
fn link(uid: &str) -> String {
    let (first, second) = uid.as_bytes().split_at(uid.len() / 2);
    let [first, second] = [first, second].map(fnv32a);
    let hash = (u64::from(first) << 32) | u64::from(second);
    format!("sp{:013x}", hash & 0xf_ffff_ffff_ffff)
}

/// Returns the hardware address of the Pod with an address, the same for each that has it: what the machine remembers
/// of one that has gone is true of the next one, which would otherwise not be reached until that is forgotten.
fn hardware_address(ip: Ipv4Addr) -> String {
    let [a, b, c, d] = ip.octets();
    format!("0a:58:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

/// Returns the kernel parameters of a Pod's network: its own, after those that runtimes of containers set.
fn parameters(config: &SandboxConfig) -> Vec<(String, String)> {
    let defaults = [
        // As containerd and Docker do: a Pod has no ports of the machine.
        ("net.ipv4.ip_unprivileged_port_start", "0"),
        // The machine routes between Pods, and must not be left out.
        ("net.ipv4.conf.all.accept_redirects", "0"),
        ("net.ipv4.conf.eth0.accept_redirects", "0"),
    ];
    let own = config.sysctls.iter();
    let own = own.filter(|(name, _)| name.starts_with("net."));
    let defaults = defaults.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let own = own.map(|(name, value)| (name.clone(), value.clone()));
    defaults.into_iter().chain(own).collect()
}

fn write_parameters(parameters: &[(String, String)]) -> io::Result<()> {
    for (name, value) in parameters {
        // A slash in a name is a dot of the name of a link.
        let path = name.chars().map(|character| match character {
            '.' => '/',
            '/' => '.',
            other => other,
        });
        let path: String = path.collect();
        fs::write(Path::new("/proc/sys").join(path), value)
            .map_err(|error| io::Error::other(format!("cannot set {name}={value}: {error}")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_names_that_the_kernel_takes() {
        let name = link("4f6a0d0e-6f1e-4f86-9d8e-6d8a2e1f5c11");
        assert_eq!(name.len(), 15);
        assert_ne!(name, link("4f6a0d0e-6f1e-4f86-9d8e-6d8a2e1f5c12"));
        assert!(link("").starts_with("sp"));
    }

    #[test]
    fn each_state_directory_has_names_of_its_own() {
        assert_ne!(prefix(Path::new("/a")), prefix(Path::new("/b")));
    }
}
