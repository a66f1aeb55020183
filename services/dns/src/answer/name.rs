//! Names below the domain of the cluster, by their parts.

use std::net::IpAddr;

use crate::records::Protocol;

/// The subject of a question, from the labels before the domain.
#[derive(Debug, PartialEq)]
pub enum Subject<'a> {
    /// The domain itself.
    Apex,
    /// `dns-version`.
    Version,
    /// `ns.dns`.
    NameServer,
    /// `svc`, `pod` or `dns`, which have names below them only.
    Parent,
    /// A namespace below `svc` or `pod`.
    Namespace(&'a str),
    /// A Service, or a part of it.
    Service(ServiceQuestion<'a>),
    /// A Pod.
    Pod {
        /// Its namespace.
        namespace: &'a str,
        /// Its address with dashes.
        address: &'a str,
    },
}

/// A question about a Service.
#[derive(Debug, PartialEq)]
pub struct ServiceQuestion<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The name of the Service.
    pub service: &'a str,
    /// The part of it that is asked for.
    pub part: Part<'a>,
}

/// A part of a Service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part<'a> {
    /// All of it.
    Whole,
    /// The endpoints of one name.
    Endpoint(&'a str),
    /// The ports of one protocol, which have names below.
    Protocol(Protocol),
    /// One port.
    Port(&'a str, Protocol),
}

impl<'a> Subject<'a> {
    /// Parses labels in lower case; `None` if no name has them.
    pub fn parse(labels: &[&'a str]) -> Option<Self> {
        Some(match labels {
            [] => Self::Apex,
            ["dns-version"] => Self::Version,
            ["ns", "dns"] => Self::NameServer,
            ["svc" | "pod" | "dns"] => Self::Parent,
            [namespace, "svc" | "pod"] => Self::Namespace(namespace),
            [address, namespace, "pod"] => Self::Pod { namespace, address },
            [part @ .., service, namespace, "svc"] => Self::Service(ServiceQuestion {
                namespace,
                service,
                part: Part::parse(part)?,
            }),
            _ => return None,
        })
    }
}

impl<'a> Part<'a> {
    fn parse(labels: &[&'a str]) -> Option<Self> {
        match labels {
            [] => Some(Self::Whole),
            [one] => match one.strip_prefix('_') {
                Some(protocol) => Protocol::parse(protocol).map(Self::Protocol),
                None => Some(Self::Endpoint(one)),
            },
            [port, protocol] => {
                let port = port.strip_prefix('_')?;
                let protocol = Protocol::parse(protocol.strip_prefix('_')?)?;
                Some(Self::Port(port, protocol))
            }
            _ => None,
        }
    }
}

/// Returns the label of an address, such as `10-0-0-1`.
pub fn dashed(address: IpAddr) -> String {
    address.to_string().replace(['.', ':'], "-")
}

/// Returns the address of such a label.
pub fn parse_dashed(label: &str) -> Option<IpAddr> {
    let is_v4 = label.matches('-').count() == 3 && !label.contains("--");
    let separator = if is_v4 { "." } else { ":" };
    label.replace('-', separator).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_dashes_is_read_as_it_is_written() {
        for address in ["10.0.0.1", "::1", "fd00::5:1", "1:2:3:4:5:6:7:8"] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(parse_dashed(&dashed(address)), Some(address));
        }
        assert_eq!(parse_dashed("web-0"), None);
        assert_eq!(parse_dashed("1-2-3-256"), None);
    }
}
