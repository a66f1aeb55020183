//! The bridge of a local cluster: its addresses, the routes to what no Pod has, and its place in the machine's
//! firewall.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use nix::unistd::Uid;

use super::Network;

/// The switch of the kernel that lets it pass packets on.
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";

/// Returns why Pods cannot be connected to a bridge, in one line; `None` if they can.
pub fn obstacle() -> Option<String> {
    if !Uid::effective().is_root() {
        return Some("networks of their own need root".to_owned());
    }
    let missing = [("ip", "iproute2"), ("nft", "nftables")]
        .into_iter()
        .find(|(program, _)| !is_installed(program));
    if let Some((program, package)) = missing {
        return Some(format!(
            "{program} is not installed (Debian and Ubuntu: apt-get install {package})"
        ));
    }
    // A namespace and a table that end with the program.
    let probe = Command::new("unshare")
        .args(["--net", "nft", "list", "tables"])
        .output();
    let allowed = probe.is_ok_and(|output| output.status.success());
    (!allowed).then(|| "root may not make network namespaces here".to_owned())
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories = std::env::split_paths(&path);
    directories.any(|directory| directory.join(program).is_file())
}

/// Makes the bridge with the addresses of the gateways and of `nodes` nodes, unless it is there. With `local`,
/// addresses of Services are those of the machine, so that sockets can be opened there.
///
/// # Errors
/// If the machine refuses it.
pub fn ensure(network: Network, nodes: usize, local: bool) -> anyhow::Result<()> {
    let bridge = network.bridge();
    if !exists(&bridge) {
        // An address of its own: that of a bridge without one changes with its ports, and Pods would lose the machine.
        let mac = format!("02:73:70:00:00:{:02x}", network.number);
        ip(&format!("link add {bridge} address {mac} type bridge\n"))?;
    }
    let addresses = network.gateway().into_iter();
    let addresses = addresses.chain((0..nodes).filter_map(|index| network.node(index)));
    let addresses = addresses.map(|ip| format!("address replace {ip}/24 dev {bridge}\n"));
    let mut lines: String = addresses.collect();
    lines.push_str(&format!("link set {bridge} up\n"));
    // Neither needs a default route: what no Pod and no Service has does not leave the machine.
    let kind = if local { "local " } else { "" };
    lines.push_str(&format!(
        "route replace {kind}{} dev {bridge}\n",
        network.services()
    ));
    lines.push_str(&format!("route replace unreachable {}\n", network.pods()));
    ip(&lines)?;
    if fs::read_to_string(FORWARDING).is_ok_and(|value| value.trim() == "0") {
        fs::write(FORWARDING, "1").with_context(|| format!("cannot write {FORWARDING}"))?;
    }
    firewall(&bridge, "-I", false)
}

/// Removes the bridge of a network and the routes to it, if they are there.
///
/// # Errors
/// If the machine refuses it.
pub fn remove(network: Network) -> anyhow::Result<()> {
    let bridge = network.bridge();
    // Another user's may have the same name.
    if Uid::effective().is_root() && exists(&bridge) {
        firewall(&bridge, "-D", true)?;
        ip(&format!("link delete {bridge}\n"))?;
        let _ = ip(&format!("route delete unreachable {}\n", network.pods()));
    }
    Ok(())
}

/// Returns whether there is a link in the network of this process, which /sys may not show.
fn exists(name: &str) -> bool {
    let shown = Command::new("ip")
        .args(["link", "show", "dev", name])
        .output();
    shown.is_ok_and(|output| output.status.success())
}

/// Runs commands of `ip`, one in each line.
///
/// # Errors
/// If one fails.
pub(in crate::launcher) fn ip(lines: &str) -> anyhow::Result<()> {
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run ip")?;
    if let Some(mut stdin) = child.stdin.take() {
        // It may end before it has read all.
        let _ = stdin.write_all(lines.as_bytes());
    }
    let output = child.wait_with_output().context("cannot run ip")?;
    match output.status.success() {
        true => Ok(()),
        false => bail!("ip: {}", String::from_utf8_lossy(&output.stderr).trim()),
    }
}

/// Adds or removes the rules that let packets of the bridge pass, where iptables is used: a container engine lets no
/// packets of others pass. `present` tells whether the rules are expected to be there.
fn firewall(bridge: &str, change: &str, present: bool) -> anyhow::Result<()> {
    if !is_installed("iptables") {
        return Ok(());
    }
    for direction in ["-i", "-o"] {
        let rule = |change: &str| {
            let rule = [
                "-w", "5", change, "FORWARD", direction, bridge, "-j", "ACCEPT",
            ];
            Command::new("iptables").args(rule).output()
        };
        let exists = rule("-C").is_ok_and(|output| output.status.success());
        if exists != present {
            continue;
        }
        let output = rule(change).context("cannot run iptables")?;
        if !output.status.success() {
            bail!(
                "iptables: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
    }
    Ok(())
}
