//! Tests of the settings of the node-ipam-controller.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use setpoint_host::Settings as _;
use setpoint_node_ipam_controller::NodeIpam;

/// Returns the settings with these ranges of the cluster, and this size of a node's.
pub fn settings(cluster: &[&str], size: u8) -> NodeIpam {
    let parse = |text: &&str| text.parse().unwrap();
    NodeIpam {
        cluster_cidrs: cluster.iter().map(parse).collect(),
        node_cidr_mask_size: size,
        ..NodeIpam::default()
    }
}

#[test]
fn ranges_must_be_of_ipv4_divisible_and_apart() {
    for (cluster, size) in [
        (&[][..], 24),
        (&["10.244.0.0/16"], 24),
        (&["10.244.0.0/16"], 16),
        (&["10.244.0.0/16"], 32),
        (&["10.0.0.0/9", "10.128.0.0/9"], 25),
    ] {
        assert_eq!(settings(cluster, size).validate(), Ok(()), "{cluster:?}");
    }
    for (cluster, size, expected) in [
        (&[][..], 33, "node_cidr_mask_size: 33 is beyond 32"),
        (
            &["10.244.0.0/24"],
            23,
            "cluster_cidrs: the mask size of 10.244.0.0/24 must be less than or equal to node_cidr_mask_size (23)",
        ),
        (
            &["10.0.0.0/8"],
            25,
            "cluster_cidrs: 10.0.0.0/8 has too many ranges of node_cidr_mask_size (25): it may be at most 16 bits larger",
        ),
        (
            &["10.244.0.0/16", "10.245.0.0/16", "10.244.128.0/17"],
            24,
            "cluster_cidrs: 10.244.0.0/16 and 10.244.128.0/17 overlap",
        ),
    ] {
        let refused = settings(cluster, size).validate();
        assert_eq!(refused, Err(expected.to_owned()));
    }
    let parsed: Result<NodeIpam, _> = serde_json::from_str(r#"{"cluster_cidrs": ["fd00::/48"]}"#);
    let error = parsed.unwrap_err().to_string();
    assert!(
        error.starts_with(r#""fd00::/48" is no range of IPv4 addresses"#),
        "{error}"
    );
}
