//! The addresses of gateways: URIs, each of which may resolve to several.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use rand::seq::SliceRandom as _;
use rustls::pki_types::ServerName;
use tokio::net::lookup_host;
use tokio::time::timeout;

use super::endpoint_of;
use crate::client::Error;

/// The time limit of a lookup: a name server that does not answer must not delay other addresses.
const RESOLVE_WITHIN: Duration = Duration::from_secs(2);

/// The gateways' URIs, at least one.
#[derive(Debug)]
pub(super) struct Addresses {
    uris: Vec<String>,
    servers: Vec<Server>,
}

/// The host of a URI, which may have several addresses.
#[derive(Debug)]
struct Server {
    /// `host:port`.
    authority: String,
    name: Option<ServerName<'static>>,
}

/// An address of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub address: SocketAddr,
    /// The name that the gateway's certificate must have; `None` for a connection without TLS.
    pub name: Option<ServerName<'static>>,
}

impl Addresses {
    /// Reads one URI, or several with commas between them. The certificates of the gateways must have this name; empty
    /// for the host of the URI.
    pub fn parse(text: &str, server_name: &str) -> Result<Self, Error> {
        let uris: Vec<_> = text.split(',').map(|uri| uri.trim().to_owned()).collect();
        let servers = uris.iter().map(|uri| Server::parse(uri, server_name));
        let servers = servers.collect::<Result<_, _>>()?;
        Ok(Self { uris, servers })
    }

    pub fn first(&self) -> &str {
        &self.uris[0]
    }

    /// Returns whether one of them is reached by TLS.
    pub fn need_tls(&self) -> bool {
        self.servers.iter().any(|server| server.name.is_some())
    }

    /// Resolves all addresses of all gateways now, in random order.
    pub async fn resolve(&self) -> Vec<Destination> {
        let lookups = self.servers.iter().map(Server::resolve);
        let mut destinations = join_all(lookups).await.concat();
        destinations.sort_by_key(|destination| destination.address);
        destinations.dedup_by_key(|destination| destination.address);
        destinations.shuffle(&mut rand::rng());
        destinations
    }
}

impl Server {
    fn parse(uri: &str, server_name: &str) -> Result<Self, Error> {
        let nowhere = || Error::Nowhere {
            address: uri.to_owned(),
        };
        let endpoint = endpoint_of(uri)?;
        let host = endpoint.uri().host().ok_or_else(nowhere)?;
        let scheme = endpoint.uri().scheme_str().ok_or_else(nowhere)?;
        let (default_port, is_secure) = match scheme {
            "http" => (80, false),
            "https" => (443, true),
            _ => return Err(nowhere()),
        };
        let port = endpoint.uri().port_u16().unwrap_or(default_port);
        let name = match server_name {
            "" => ServerName::try_from(host.trim_matches(['[', ']']).to_owned()),
            name => ServerName::try_from(name.to_owned()),
        };
        let name = name.map_err(|_| match server_name {
            "" => nowhere(),
            name => Error::ServerName {
                name: name.to_owned(),
            },
        });
        Ok(Self {
            authority: format!("{host}:{port}"),
            name: is_secure.then_some(name).transpose()?,
        })
    }

    /// Returns no address if the lookup fails: the name of a gateway that is down may not resolve.
    async fn resolve(&self) -> Vec<Destination> {
        let lookup = timeout(RESOLVE_WITHIN, lookup_host(self.authority.as_str()));
        let Ok(Ok(found)) = lookup.await else {
            return Vec::new();
        };
        let destination = |address| Destination {
            address,
            name: self.name.clone(),
        };
        found.map(destination).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn resolved(text: &str) -> Vec<String> {
        let all = Addresses::parse(text, "").unwrap().resolve().await;
        let mut all: Vec<_> = all.iter().map(|one| one.address.to_string()).collect();
        all.sort_unstable();
        all
    }

    #[tokio::test]
    async fn a_list_stands_for_all_of_its_addresses() {
        let text = "http://127.0.0.1:1, http://127.0.0.2:2,http://[::1]:3,http://127.0.0.1:1";
        let addresses = Addresses::parse(text, "").unwrap();
        assert_eq!(addresses.first(), "http://127.0.0.1:1");
        assert_eq!(
            resolved(text).await,
            ["127.0.0.1:1", "127.0.0.2:2", "[::1]:3"]
        );
    }

    #[tokio::test]
    async fn a_name_that_does_not_resolve_does_not_hide_the_other_addresses() {
        let all = resolved("http://no.such.host.invalid:1,http://127.0.0.1:2").await;
        assert_eq!(all, ["127.0.0.1:2"]);
    }

    #[tokio::test]
    async fn the_certificate_of_a_gateway_must_have_the_given_name_or_the_host_of_its_uri() {
        for (uri, name) in [
            ("https://127.0.0.1:1", Some("127.0.0.1")),
            ("https://[::1]", Some("::1")),
            ("https://localhost:1", Some("localhost")),
            ("http://127.0.0.1:1", None),
        ] {
            let given = Addresses::parse(uri, "gateway").unwrap().resolve().await;
            let gateway = name.map(|_| ServerName::try_from("gateway").unwrap());
            assert!(given.iter().all(|one| one.name == gateway), "{uri}");
            let addresses = Addresses::parse(uri, "").unwrap();
            assert_eq!(addresses.need_tls(), name.is_some(), "{uri}");
            let expected = name.map(|name| ServerName::try_from(name).unwrap());
            let resolved = addresses.resolve().await;
            assert!(!resolved.is_empty(), "{uri}");
            assert!(resolved.iter().all(|one| one.name == expected), "{uri}");
        }
    }

    #[test]
    fn an_address_without_a_host_is_refused_by_name() {
        for address in ["127.0.0.1:6443", "http://a:1,", "/registry", "http://a:1,b"] {
            let error = Addresses::parse(address, "").unwrap_err().to_string();
            assert!(error.contains("not a URI"), "{address}: {error}");
        }
    }
}
