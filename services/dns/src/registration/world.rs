//! World: this replica, the Service, the slices of replicas, and which replicas are there.

use std::net::IpAddr;
use std::sync::Arc;

use setpoint_controller::{View, Whole, lease_name};
use setpoint_model::{Meta, Revision};
use setpoint_proto::coordination::Lease;
use setpoint_proto::discovery::EndpointSlice;

use super::{Renewals, SERVICE};

/// The Lease of a replica: only that it was written matters.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseView {
    meta: Meta,
}

impl View for LeaseView {
    type Object = Lease;

    fn of(lease: Lease) -> Self {
        Self {
            meta: Meta::identity(&lease.metadata),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// This replica.
#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    /// The name of its Lease.
    pub lease: String,
    /// The address at which others reach it.
    pub address: IpAddr,
    /// The port, of both protocols.
    pub port: u16,
    /// Whether it answers, and is not about to stop.
    pub serves: bool,
}

impl Replica {
    /// Returns the name of the Lease of an instance.
    pub fn lease(instance: &str) -> String {
        lease_name(instance)
    }

    /// Returns the name of its slice.
    pub fn slice(&self) -> String {
        format!("{SERVICE}-{}", self.lease)
    }
}

/// Everything that a plan depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// This replica.
    pub me: Replica,
    /// The cluster IP that the Service should have; empty for any.
    pub cluster_ip: String,
    /// Whether the Service exists.
    pub has_service: bool,
    /// The slices of all replicas, in any order.
    pub slices: Vec<Arc<Whole<EndpointSlice>>>,
    /// The Leases of all replicas.
    pub renewals: Renewals,
    /// The revision up to which Leases are known.
    pub reached: Revision,
}
