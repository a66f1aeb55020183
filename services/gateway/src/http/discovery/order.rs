//! The order of groups and versions in discovery, which is upstream's. Clients resolve a name that several groups have
//! to the first of them.

use std::cmp::Reverse;

use setpoint_codec::{Kind, group_rank};

/// The priorities of the groups of custom resources and of their versions, as upstream's.
const CUSTOM: (i32, i32) = (1000, 100);
/// The priority of the first group of Kubernetes, and the distance of the others.
const FIRST: i32 = 18_000;
const DISTANCE: i32 = 100;

/// Returns the priorities of the group and of the version of a kind, highest first.
pub(crate) fn priorities(kind: &Kind) -> (i32, i32) {
    let place = group_rank(&kind.group).and_then(|rank| i32::try_from(rank).ok());
    let Some(place) = place.filter(|_| !kind.is_custom()) else {
        return CUSTOM;
    };
    let number = kind.version.trim_start_matches('v').parse();
    let number: i32 = number.unwrap_or_default();
    (FIRST - place * DISTANCE, 1 + number)
}

/// Returns the sort key of a group and version: the preferred version of a group comes first.
pub(in crate::http) fn key<'a>(group: &'a str, version: &'a str) -> impl Ord + use<'a> {
    let rank = group_rank(group).unwrap_or(u32::MAX);
    (rank, group, Reverse(maturity(version)), version)
}

/// Returns stability, major and minor number of a version: `v2` > `v1` > `v2beta1` > `v1alpha2` > others.
pub(super) fn maturity(version: &str) -> (u8, u64, u64) {
    parse(version).unwrap_or_default()
}

fn parse(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit());
    let (major, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let major = major.parse().ok()?;
    if rest.is_empty() {
        return Some((3, major, 0));
    }
    let (stability, minor) = match rest.strip_prefix("beta") {
        Some(minor) => (2, minor),
        None => (1, rest.strip_prefix("alpha")?),
    };
    Some((stability, major, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_and_newer_versions_come_first() {
        let mut versions = ["v1alpha2", "v1", "odd", "v2beta1", "v10", "v1beta1", "v2"];
        versions.sort_by(|a, b| key("batch", a).cmp(&key("batch", b)));
        let expected = ["v10", "v2", "v1", "v2beta1", "v1beta1", "v1alpha2", "odd"];
        assert_eq!(versions, expected);
    }

    #[test]
    fn known_groups_come_first() {
        let mut groups = ["example.com", "events.k8s.io", "batch", "", "a.io", "apps"];
        groups.sort_by(|a, b| key(a, "v1").cmp(&key(b, "v1")));
        let expected = ["", "apps", "events.k8s.io", "batch", "a.io", "example.com"];
        assert_eq!(groups, expected);
    }
}
