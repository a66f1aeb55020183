//! The choice of a network that no other cluster of the machine has.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};
use setpoint_model::Cidr;

use super::{Kind, NUMBERS, Network};
use crate::launcher::state_dir::StateDir;

/// Returns the first network that no other cluster has and to whose addresses the machine has no route; if there is
/// none, the first one that has no more precise route.
pub(super) fn free(state_dir: &StateDir, kind: Kind) -> anyhow::Result<Network> {
    let routes = routes();
    let (mut candidates, mut others) = (Vec::new(), Vec::new());
    for number in 0..NUMBERS {
        let network = Network { number, kind };
        match network.is_taken(state_dir)? {
            true => others.extend(network.owner()),
            false => candidates.push(network),
        }
    }
    if candidates.is_empty() {
        bail!("{}", all_taken(&others));
    }
    let clashes = |network: Network, precise: bool| {
        let ranges = [network.pods(), network.nodes(), network.services()];
        let mut ranges = ranges.iter().filter_map(|range| range.parse::<Cidr>().ok());
        ranges.any(|range| {
            let mut routes = routes.iter();
            routes.any(|route| match precise {
                true => route.is_within(range),
                false => route.overlaps(range),
            })
        })
    };
    let mut all = [false, true].into_iter().flat_map(|precise| {
        let candidates = candidates.iter().copied();
        candidates.filter(move |network| !clashes(*network, precise))
    });
    all.next()
        .with_context(|| format!("this machine has routes to the ranges of all {NUMBERS} networks that a local cluster may have"))
}

/// Returns the error that clusters in these state directories have all networks.
pub(super) fn all_taken(others: &[PathBuf]) -> String {
    let others: Vec<_> = others
        .iter()
        .map(|other| other.display().to_string())
        .collect();
    format!(
        "other local clusters have all {NUMBERS} networks of this machine: {}; end one with `setpoint down --state` and its directory",
        others.join(", ")
    )
}

/// Returns the destinations of the machine's routes but the default.
fn routes() -> Vec<Cidr> {
    let output = Command::new("ip").args(["-4", "route", "show"]).output();
    let output = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&output).into_owned();
    let words = text.lines().flat_map(|line| line.split_whitespace().next());
    words.filter_map(|word| word.parse().ok()).collect()
}
