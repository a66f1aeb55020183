//! Groups: the endpoints of one address family that have the same ports.

use std::net::IpAddr;

use setpoint_proto::discovery::{Endpoint, EndpointPort};

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Returns the family of an address; `None` if it is malformed.
    pub fn of(address: &str) -> Option<Self> {
        Some(match address.parse().ok()? {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        })
    }

    /// Returns its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

/// The endpoints of one address family that have the same ports, in the order in which they were added.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The family of the addresses.
    pub family: Family,
    /// The ports.
    pub ports: Vec<EndpointPort>,
    /// The endpoints. Each has one address.
    pub endpoints: Vec<Endpoint>,
}

impl Group {
    /// Adds an endpoint to the group of its family and ports, which is made if there is none.
    pub(crate) fn add(
        groups: &mut Vec<Self>,
        family: Family,
        ports: Vec<EndpointPort>,
        endpoint: Endpoint,
    ) {
        let same = |group: &&mut Self| group.family == family && group.ports == ports;
        match groups.iter_mut().find(same) {
            Some(group) => group.endpoints.push(endpoint),
            None => groups.push(Self {
                family,
                ports,
                endpoints: vec![endpoint],
            }),
        }
    }
}
