//! Names of addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hickory_proto::rr::rdata::PTR;
use hickory_proto::rr::{Name, RData, RecordType};
use setpoint_controller::View as _;

use super::service::hostname;
use super::{Answer, Records, Zone};
use crate::records::{Index, ServiceView, SliceView};

/// Answers for an address of the cluster. Others, and those that nothing here has, may have a name elsewhere.
pub fn answer(zone: &Zone, index: &Index, asked: &Name, of: RecordType) -> Answer {
    let address = parse(asked).filter(|address| zone.has(*address));
    let Some(address) = address else {
        return Answer::Elsewhere;
    };
    let services = index.services_at(address);
    let mut names: Vec<_> = services.filter_map(|one| service_name(zone, one)).collect();
    if names.is_empty() {
        let slices = index.slices_at(address);
        let slices = slices.filter(|one| {
            index
                .service(&one.meta().key.namespace, &one.service)
                .is_some()
        });
        names.extend(slices.flat_map(|slice| endpoint_names(zone, slice, address)));
        // Slices with other ports have the same endpoints.
        names.sort();
        names.dedup();
    }
    if names.is_empty() {
        return Answer::Elsewhere;
    }
    let mut records = Records::default();
    if of == RecordType::PTR {
        let data = names.into_iter().map(|name| RData::PTR(PTR(name)));
        records
            .answers
            .extend(data.map(|data| zone.record(asked, data)));
    }
    records.into()
}

fn service_name(zone: &Zone, service: &ServiceView) -> Option<Name> {
    let key = &service.meta().key;
    zone.name([&*key.name, &*key.namespace, "svc"])
}

fn endpoint_names(zone: &Zone, slice: &SliceView, address: IpAddr) -> impl Iterator<Item = Name> {
    let namespace = &slice.meta().key.namespace;
    let endpoints = slice.endpoints.iter();
    let endpoints = endpoints.filter(move |endpoint| endpoint.address == address);
    endpoints.filter_map(move |endpoint| {
        zone.name([&*hostname(endpoint), &*slice.service, namespace, "svc"])
    })
}

/// Parses a whole address in `in-addr.arpa` or `ip6.arpa`.
fn parse(name: &Name) -> Option<IpAddr> {
    let lower = name.to_lowercase();
    let labels: Vec<&str> = lower
        .iter()
        .map(|label| str::from_utf8(label).ok())
        .collect::<Option<_>>()?;
    match &*labels {
        [parts @ .., "in-addr", "arpa"] => {
            let mut octets = [0; 4];
            fill(parts, &mut octets, canonical)?;
            Some(Ipv4Addr::from(octets).into())
        }
        [parts @ .., "ip6", "arpa"] => {
            let mut nibbles = [0; 32];
            fill(parts, &mut nibbles, |part| match part.len() {
                1 => u8::from_str_radix(part, 16).ok(),
                _ => None,
            })?;
            let bits = nibbles
                .iter()
                .fold(0, |bits, nibble| bits << 4 | u128::from(*nibble));
            Some(Ipv6Addr::from_bits(bits).into())
        }
        _ => None,
    }
}

/// Parses a number as it is written in a name: without signs or leading zeros.
fn canonical(part: &str) -> Option<u8> {
    let number: u8 = part.parse().ok()?;
    (number.to_string() == part).then_some(number)
}

/// Fills `digits` from the parts of a name, which begins with the last one.
fn fill(parts: &[&str], digits: &mut [u8], parse: impl Fn(&str) -> Option<u8>) -> Option<()> {
    if parts.len() != digits.len() {
        return None;
    }
    for (digit, part) in digits.iter_mut().zip(parts.iter().rev()) {
        *digit = parse(part)?;
    }
    Some(())
}
