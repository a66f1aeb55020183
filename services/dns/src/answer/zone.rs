//! The domain of the cluster and its own records.

use std::net::IpAddr;

use hickory_proto::rr::rdata::{A, AAAA, NS, SOA, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Records};
use crate::records::Index;
use crate::registration::{NAMESPACE, SERVICE};

/// The version of Kubernetes' specification.
const VERSION: &str = "1.1.0";
/// The TTL of the version in seconds: it changes with the program only.
const VERSION_TTL: u32 = 28_800;

/// The names of Pods that exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PodMode {
    /// None.
    Disabled,
    /// Any address in any namespace that exists.
    #[default]
    Insecure,
    /// Addresses that a Pod of the namespace has.
    Verified,
}

/// A domain, and the parameters of answers about it.
#[derive(Clone, Debug)]
pub struct Zone {
    /// The name of the domain.
    pub origin: Name,
    /// The TTL of records, and of the absence of names, in seconds.
    pub ttl: u32,
    /// The names of Pods that exist.
    pub pods: PodMode,
    /// The addresses whose names are asked for here, as network and length of its prefix.
    pub reverse: Vec<(IpAddr, u8)>,
    /// The addresses of the cluster's DNS while its Service has none.
    pub addresses: Vec<IpAddr>,
}

impl Zone {
    /// Returns a name below the domain, of labels in lower case; `None` if it is too long.
    pub fn name<'a>(&'a self, labels: impl IntoIterator<Item = &'a str>) -> Option<Name> {
        let labels = labels.into_iter().map(str::as_bytes);
        let name = labels.chain(self.origin.iter());
        Name::from_labels(name).ok()
    }

    /// Returns the records of addresses of a type.
    pub fn addresses(
        &self,
        name: &Name,
        of: RecordType,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> impl Iterator<Item = Record> {
        let data = addresses.into_iter().filter_map(move |ip| match (ip, of) {
            (IpAddr::V4(ip), RecordType::A) => Some(RData::A(A(ip))),
            (IpAddr::V6(ip), RecordType::AAAA) => Some(RData::AAAA(AAAA(ip))),
            _ => None,
        });
        data.map(|data| self.record(name, data))
    }

    /// Returns a record with the TTL of the domain.
    pub fn record(&self, name: &Name, data: RData) -> Record {
        Record::from_rdata(name.clone(), self.ttl, data)
    }

    /// Returns the record that says for how long a name does not exist. Its serial number is the time of the last
    /// change.
    pub fn soa(&self, serial: u32) -> Record {
        let (refresh, retry, expire) = (7200, 1800, 86_400);
        let rname = self.name(["hostmaster"]).unwrap_or_default();
        let soa = SOA::new(
            self.server(),
            rname,
            serial,
            refresh,
            retry,
            expire,
            self.ttl,
        );
        self.record(&self.origin, RData::SOA(soa))
    }

    fn server(&self) -> Name {
        self.name(["ns", "dns"]).unwrap_or_default()
    }

    pub(super) fn apex(&self, index: &Index, asked: &Name, of: RecordType) -> Answer {
        let mut records = Records::default();
        match of {
            // Its serial number is not known here: the server replaces it.
            RecordType::SOA => records.push(self.soa(0)),
            RecordType::NS => {
                let server = self.server();
                records.push(self.record(asked, RData::NS(NS(server.clone()))));
                let glue = self.servers(index, &server, RecordType::A);
                records.additionals.extend(glue);
            }
            _ => {}
        }
        records.into()
    }

    pub(super) fn version(&self, asked: &Name, of: RecordType) -> Answer {
        let mut records = Records::default();
        if of == RecordType::TXT {
            let data = RData::TXT(TXT::new(vec![VERSION.to_owned()]));
            records.push(Record::from_rdata(asked.clone(), VERSION_TTL, data));
        }
        records.into()
    }

    pub(super) fn name_server(&self, index: &Index, asked: &Name, of: RecordType) -> Answer {
        Records {
            answers: self.servers(index, asked, of),
            additionals: Vec::new(),
        }
        .into()
    }

    fn servers(&self, index: &Index, name: &Name, of: RecordType) -> Vec<Record> {
        let service = index
            .service(NAMESPACE, SERVICE)
            .map(|(service, _)| service);
        let mut ips: Vec<_> = service
            .into_iter()
            .flat_map(|one| one.cluster_ips())
            .collect();
        if ips.is_empty() {
            ips.clone_from(&self.addresses);
        }
        self.addresses(name, of, ips).collect()
    }

    /// Returns whether the names of an address are asked for here.
    pub fn has(&self, address: IpAddr) -> bool {
        self.reverse
            .iter()
            .any(|&(network, length)| contains(network, length, address))
    }
}

fn contains(network: IpAddr, length: u8, address: IpAddr) -> bool {
    let (network, address, bits) = match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => (
            u128::from(network.to_bits()),
            u128::from(address.to_bits()),
            32,
        ),
        (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits(), address.to_bits(), 128),
        _ => return false,
    };
    let shift = u32::from(bits - length.min(bits));
    network.checked_shr(shift) == address.checked_shr(shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_of_its_prefix() {
        let has = |network: &str, length, address: &str| {
            contains(network.parse().unwrap(), length, address.parse().unwrap())
        };
        assert!(has("10.96.0.0", 12, "10.111.255.255"));
        assert!(!has("10.96.0.0", 12, "10.112.0.0"));
        assert!(has("0.0.0.0", 0, "1.2.3.4"));
        assert!(has("::", 0, "fd00::1"));
        assert!(!has("::", 0, "1.2.3.4"));
        assert!(has("1.2.3.4", 32, "1.2.3.4"));
    }
}
