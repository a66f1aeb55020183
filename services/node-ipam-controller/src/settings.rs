//! The settings of the node-ipam-controller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_model::Cidr;

/// The largest number of bits that a range of the cluster may be larger than one of a node, as upstream.
const DIFFERENCE_MAX: u8 = 16;

/// Ranges of the addresses of Pods, and how they are divided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NodeIpam {
    /// Ranges of IPv4 from which nodes get theirs, such as 10.244.0.0/16, used in this order; none assigns nothing.
    ///
    /// Each may be divided into 65536 ranges of nodes at most.
    pub cluster_cidrs: Vec<Cidr>,
    /// Ranges of the addresses of Services, as the gateways have them: no node gets a part of them.
    pub service_cidrs: Vec<Cidr>,
    /// Number of first bits that the addresses of a node share; at most 32.
    pub node_cidr_mask_size: u8,
}

impl Default for NodeIpam {
    fn default() -> Self {
        Self {
            cluster_cidrs: Vec::new(),
            service_cidrs: Vec::new(),
            node_cidr_mask_size: 24,
        }
    }
}

impl setpoint_host::Settings for NodeIpam {
    fn validate(&self) -> Result<(), String> {
        let size = self.node_cidr_mask_size;
        if size > 32 {
            return Err(format!("node_cidr_mask_size: {size} is beyond 32"));
        }
        for (index, range) in self.cluster_cidrs.iter().enumerate() {
            let bits = range.bits();
            if bits > size {
                return Err(format!(
                    "cluster_cidrs: the mask size of {range} must be less than or equal to node_cidr_mask_size ({size})"
                ));
            }
            if size - bits > DIFFERENCE_MAX {
                return Err(format!(
                    "cluster_cidrs: {range} has too many ranges of node_cidr_mask_size ({size}): \
                     it may be at most {DIFFERENCE_MAX} bits larger"
                ));
            }
            let mut earlier = self.cluster_cidrs[..index].iter();
            if let Some(other) = earlier.find(|other| other.overlaps(*range)) {
                return Err(format!("cluster_cidrs: {other} and {range} overlap"));
            }
        }
        Ok(())
    }
}
