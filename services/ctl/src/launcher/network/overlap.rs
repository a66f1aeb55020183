//! The networks that this machine is in, which the ranges of a cluster of several machines must not overlap: its routes
//! to Pods and its tables of Services would take the place of machines there.

use std::net::Ipv4Addr;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use setpoint_model::Cidr;

/// Starts of the names of links that have addresses of the cluster's own ranges: those of its bridges.
const OWN: [&str; 2] = ["setpoint", "cni"];

/// A link, as `ip -json address` has it.
#[derive(Deserialize)]
struct Link {
    #[serde(rename = "ifname")]
    name: String,
    #[serde(default, rename = "addr_info")]
    addresses: Vec<Address>,
}

#[derive(Deserialize)]
struct Address {
    #[serde(rename = "local")]
    ip: Ipv4Addr,
    #[serde(rename = "prefixlen")]
    bits: u8,
}

/// A range of addresses of the cluster, with what it is for.
pub type Range = (&'static str, Cidr);

/// Fails if these ranges overlap each other, or the network of a link of this machine.
///
/// # Errors
/// The range, and what it overlaps.
pub fn check(ranges: &[Range]) -> anyhow::Result<()> {
    let output = Command::new("ip").args(["-json", "-4", "address"]).output();
    let output = output.context("the program ip is missing (Debian: apt-get install iproute2)")?;
    let links = serde_json::from_slice(&output.stdout);
    let links: Vec<Link> = links.context("`ip -json address` cannot be read")?;
    compare(ranges, &links)
}

fn compare(ranges: &[Range], links: &[Link]) -> anyhow::Result<()> {
    if let [(one, first), (other, second)] = ranges
        && first.overlaps(*second)
    {
        bail!("the range of {one}, {first}, overlaps that of {other}, {second}");
    }
    let is_own = |link: &&Link| OWN.iter().any(|own| link.name.starts_with(own));
    for link in links.iter().filter(|link| !is_own(link)) {
        for Address { ip, bits } in &link.addresses {
            let Some(network) = Cidr::new(*ip, *bits) else {
                continue;
            };
            if let Some((what, range)) = ranges.iter().find(|(_, range)| range.overlaps(network)) {
                bail!(
                    "the range of {what}, {range}, overlaps {network}, the network of {} on this machine",
                    link.name
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(pods: &str, services: &str, addresses: &str) -> Result<(), String> {
        let ranges = [("Pods", pods), ("Services", services)];
        let ranges = ranges.map(|(what, range)| (what, range.parse().unwrap()));
        let links = serde_json::from_str::<Vec<Link>>(addresses).unwrap();
        compare(&ranges, &links).map_err(|error| error.to_string())
    }

    fn links(name: &str, ip: &str, bits: u8) -> String {
        format!(
            r#"[{{"ifname":"lo","addr_info":[{{"local":"127.0.0.1","prefixlen":8}}]}},
                {{"ifname":"none"}},
                {{"ifname":"{name}","addr_info":[{{"local":"{ip}","prefixlen":{bits}}}]}}]"#
        )
    }

    #[test]
    fn ranges_that_overlap_are_named_with_what_they_overlap() {
        let (pods, services) = ("10.244.0.0/16", "10.96.0.0/16");
        let compared_with = |links: &str| compared(pods, services, links);
        assert_eq!(compared_with(&links("eth0", "10.0.0.1", 24)), Ok(()));
        assert_eq!(
            compared_with(&links("setpoint-pods", "10.244.1.1", 24)),
            Ok(())
        );
        assert_eq!(
            compared_with(&links("eth0", "10.244.7.3", 24)).unwrap_err(),
            "the range of Pods, 10.244.0.0/16, overlaps 10.244.7.0/24, the network of eth0 on this machine"
        );
        assert_eq!(
            compared_with(&links("eth1", "10.96.0.9", 32)).unwrap_err(),
            "the range of Services, 10.96.0.0/16, overlaps 10.96.0.9, the network of eth1 on this machine"
        );
        let whole = compared_with(&links("eth0", "10.0.0.1", 8)).unwrap_err();
        assert!(
            whole.contains("overlaps 10.0.0.0/8, the network of eth0"),
            "{whole}"
        );
        assert_eq!(
            compared(pods, "10.244.128.0/20", "[]").unwrap_err(),
            "the range of Pods, 10.244.0.0/16, overlaps that of Services, 10.244.128.0/20"
        );
    }
}
