//! A view of a Service.

use std::net::Ipv4Addr;

use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_proto::core;

/// The addresses of a Service.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// Its cluster IPs of IPv4.
    pub addresses: Box<[Ipv4Addr]>,
}

/// Returns the cluster IPs of IPv4 of a Service.
pub(crate) fn addresses(service: &core::Service) -> Box<[Ipv4Addr]> {
    let spec = &service.spec;
    let texts = spec.cluster_ips.iter().chain([&spec.cluster_ip]);
    let mut addresses: Vec<_> = texts.filter_map(|text| text.parse().ok()).collect();
    // The first one is in both fields.
    addresses.sort_unstable();
    addresses.dedup();
    addresses.into()
}

impl View for AddressView {
    type Object = core::Service;

    fn of(service: core::Service) -> Self {
        let mut meta = Meta::of(&service.metadata);
        meta.labels.clear();
        meta.annotations.clear();
        Self {
            meta,
            addresses: addresses(&service),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
