//! The addresses of gateways: URIs, each of which may resolve to several.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use rand::seq::SliceRandom as _;
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
    /// `host:port` of each.
    places: Vec<String>,
}

impl Addresses {
    /// Reads one URI, or several with commas between them.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let uris: Vec<_> = text.split(',').map(|uri| uri.trim().to_owned()).collect();
        let places = uris
            .iter()
            .map(|uri| place(uri))
            .collect::<Result<_, _>>()?;
        Ok(Self { uris, places })
    }

    pub fn first(&self) -> &str {
        &self.uris[0]
    }

    /// Resolves all addresses of all gateways now, in random order.
    pub async fn resolve(&self) -> Vec<SocketAddr> {
        let lookups = self.places.iter().map(|place| async move {
            match timeout(RESOLVE_WITHIN, lookup_host(place.as_str())).await {
                Ok(Ok(found)) => found.collect(),
                // The name of a gateway that is down may not resolve.
                _ => Vec::new(),
            }
        });
        let mut addresses = join_all(lookups).await.concat();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.shuffle(&mut rand::rng());
        addresses
    }
}

fn place(uri: &str) -> Result<String, Error> {
    let nowhere = || Error::Nowhere {
        address: uri.to_owned(),
    };
    let endpoint = endpoint_of(uri)?;
    let host = endpoint.uri().host().ok_or_else(nowhere)?;
    let port = match (endpoint.uri().port_u16(), endpoint.uri().scheme_str()) {
        (Some(port), Some(_)) => port,
        (None, Some("http")) => 80,
        (None, Some("https")) => 443,
        _ => return Err(nowhere()),
    };
    Ok(format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_list_stands_for_all_of_its_addresses() {
        let text = "http://127.0.0.1:1, http://127.0.0.2:2,http://[::1]:3,http://127.0.0.1:1";
        let addresses = Addresses::parse(text).unwrap();
        assert_eq!(addresses.first(), "http://127.0.0.1:1");
        let mut all = addresses.resolve().await;
        all.sort_unstable();
        let all: Vec<_> = all.iter().map(ToString::to_string).collect();
        assert_eq!(all, ["127.0.0.1:1", "127.0.0.2:2", "[::1]:3"]);
    }

    #[tokio::test]
    async fn a_name_that_does_not_resolve_does_not_hide_the_other_addresses() {
        let addresses = Addresses::parse("http://no.such.host.invalid:1,http://127.0.0.1:2");
        let all = addresses.unwrap().resolve().await;
        assert_eq!(all, ["127.0.0.1:2".parse().unwrap()]);
    }

    #[test]
    fn an_address_without_a_host_is_refused_by_name() {
        for address in ["127.0.0.1:6443", "http://a:1,", "/registry", "http://a:1,b"] {
            let error = Addresses::parse(address).unwrap_err().to_string();
            assert!(error.contains("not a URI"), "{address}: {error}");
        }
    }
}
