//! Names of Services, their ports and their endpoints.

use std::borrow::Cow;
use std::net::IpAddr;

use hickory_proto::rr::rdata::{CNAME, SRV};
use hickory_proto::rr::{Name, RData, RecordType};

use super::name::{Part, ServiceQuestion, dashed, parse_dashed};
use super::{Answer, Records, Zone};
use crate::records::{Endpoint, Entry, Index, Port, ServiceView, Target};

/// Sum of the weights of the SRV records of an answer, as in CoreDNS.
const WEIGHTS: usize = 100;

/// A host of a Service: the addresses of one name, and the ports that it serves.
struct Host<'a> {
    /// The name below the Service; `None` for that of the Service.
    label: Option<Cow<'a, str>>,
    address: IpAddr,
    ports: Vec<&'a Port>,
}

pub fn answer(
    zone: &Zone,
    index: &Index,
    asked: &Name,
    of: RecordType,
    question: &ServiceQuestion<'_>,
) -> Answer {
    let found = index.service(question.namespace, question.service);
    let found = found.filter(|_| index.has_namespace(question.namespace));
    let Some((service, entry)) = found else {
        return Answer::NoName;
    };
    if let Target::ExternalName(name) = &service.target {
        return match question.part {
            Part::Whole => external(zone, asked, of, name),
            _ => Answer::NoName,
        };
    }
    let hosts = hosts(service, entry, question.part);
    if hosts.is_empty() {
        return Answer::NoName;
    }
    match (of, question.part) {
        // It has names below it only.
        (_, Part::Protocol(_)) => Records::default().into(),
        (RecordType::SRV, _) => srv(zone, asked, question, &hosts).into(),
        _ => Records {
            answers: addresses(zone, asked, of, &hosts),
            additionals: Vec::new(),
        }
        .into(),
    }
}

/// Returns the alias of a Service with an external name.
fn external(zone: &Zone, asked: &Name, of: RecordType, external: &str) -> Answer {
    let is_address = external.parse::<IpAddr>().is_ok();
    let target = Name::from_ascii(external).ok().filter(|_| !is_address);
    let Some(mut target) = target else {
        return Answer::NoName;
    };
    target.set_fqdn(true);
    let data = RData::CNAME(CNAME(target.clone()));
    let records = Records {
        answers: vec![zone.record(asked, data)],
        additionals: Vec::new(),
    };
    match of {
        RecordType::A | RecordType::AAAA => Answer::Alias { records, target },
        RecordType::CNAME => records.into(),
        _ => Records::default().into(),
    }
}

/// Returns the hosts of a part of a Service.
fn hosts<'a>(service: &'a ServiceView, entry: &'a Entry, part: Part<'_>) -> Vec<Host<'a>> {
    match (&service.target, part) {
        (Target::ClusterIps(ips), Part::Whole | Part::Protocol(_) | Part::Port(..)) => {
            let ports = matching(&service.ports, part);
            let serves = part == Part::Whole || !ports.is_empty();
            let ips = ips.iter().filter(|_| serves);
            ips.map(|&address| Host {
                label: None,
                address,
                ports: ports.clone(),
            })
            .collect()
        }
        _ => endpoints(entry, part),
    }
}

fn endpoints<'a>(entry: &'a Entry, part: Part<'_>) -> Vec<Host<'a>> {
    let wanted = match part {
        Part::Endpoint(label) => Some((label, parse_dashed(label))),
        _ => None,
    };
    let mut hosts = Vec::new();
    for slice in entry.slices() {
        let ports = matching(&slice.ports, part);
        if ports.is_empty() && matches!(part, Part::Protocol(_) | Part::Port(..)) {
            continue;
        }
        let endpoints = slice.endpoints.iter();
        let endpoints = endpoints.filter(|endpoint| {
            wanted.is_none_or(|(label, address)| is_named(endpoint, label, address))
        });
        hosts.extend(endpoints.map(|endpoint| Host {
            label: Some(hostname(endpoint)),
            address: endpoint.address,
            ports: ports.clone(),
        }));
    }
    hosts
}

/// Returns whether an endpoint has this name, which is that of `address` if it is one.
fn is_named(endpoint: &Endpoint, label: &str, address: Option<IpAddr>) -> bool {
    match &endpoint.hostname {
        Some(hostname) => hostname.eq_ignore_ascii_case(label),
        None => address == Some(endpoint.address),
    }
}

/// Returns the name of an endpoint below its Service.
pub fn hostname(endpoint: &Endpoint) -> Cow<'_, str> {
    match &endpoint.hostname {
        Some(hostname) => Cow::Borrowed(hostname),
        None => Cow::Owned(dashed(endpoint.address)),
    }
}

fn matching<'a>(ports: &'a [Port], part: Part<'_>) -> Vec<&'a Port> {
    let ports = ports.iter();
    match part {
        Part::Whole | Part::Endpoint(_) => ports.collect(),
        Part::Protocol(protocol) => ports
            .filter(|port| port.protocol == protocol && !port.name.is_empty())
            .collect(),
        Part::Port(name, protocol) => ports
            .filter(|port| port.protocol == protocol && port.name.eq_ignore_ascii_case(name))
            .collect(),
    }
}

/// Returns the records of the addresses of hosts, each once.
fn addresses(
    zone: &Zone,
    name: &Name,
    of: RecordType,
    hosts: &[Host<'_>],
) -> Vec<hickory_proto::rr::Record> {
    // Slices with other ports repeat the endpoints.
    let mut ips: Vec<_> = hosts.iter().map(|host| host.address).collect();
    ips.sort_unstable();
    ips.dedup();
    zone.addresses(name, of, ips).collect()
}

fn srv(zone: &Zone, asked: &Name, question: &ServiceQuestion<'_>, hosts: &[Host<'_>]) -> Records {
    let mut targets = Vec::new();
    for host in hosts {
        let own = [question.service, question.namespace, "svc"];
        let labels = host.label.as_deref().into_iter().chain(own);
        if let Some(name) = zone.name(labels) {
            let numbers = host.ports.iter().filter_map(|port| port.number);
            targets.extend(numbers.map(|number| (name.clone(), number, host.address)));
        }
    }
    targets.sort();
    targets.dedup();
    let mut records = Records::default();
    for (name, _, address) in &targets {
        for of in [RecordType::A, RecordType::AAAA] {
            records
                .additionals
                .extend(zone.addresses(name, of, [*address]));
        }
    }
    records.additionals.dedup();
    targets.dedup_by(|one, other| (&one.0, one.1) == (&other.0, other.1));
    let weight = (WEIGHTS / targets.len().max(1)).max(1);
    let weight = u16::try_from(weight).unwrap_or(1);
    for (name, number, _) in targets {
        let data = RData::SRV(SRV::new(0, weight, number, name));
        records.push(zone.record(asked, data));
    }
    records
}
