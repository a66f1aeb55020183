//! Connects to a server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Uri;
use hyper_util::rt::TokioIo;
use setpoint_model::Key;
use setpoint_store::cache::Cache;
use tokio::net::{TcpStream, lookup_host};
use tower::Service;

use super::cause::of_io;
use super::service;
use crate::dial_policy::{DialPolicy, Rule};

const HTTPS: u16 = 443;

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceAddress {
    pub(crate) service: Key,
    pub(crate) port: u16,
}

impl ServiceAddress {
    /// Returns the name of the Service in the cluster, with the port. Certificates are for this name.
    pub(crate) fn host(&self) -> String {
        let Key {
            namespace, name, ..
        } = &self.service;
        format!("{name}.{namespace}.svc:{}", self.port)
    }
}

/// Connects to an endpoint of a Service, or to the host of a URL.
#[derive(Clone)]
pub(crate) struct Dialer(Arc<Route>);

struct Route {
    service: Option<ServiceAddress>,
    cache: Cache,
    policy: DialPolicy,
    /// Whether only addresses of private networks are called.
    is_private: bool,
}

impl Dialer {
    /// Returns a dialer of the hosts of URLs or, if there is one, of the endpoints of a Service.
    pub(crate) fn new(service: Option<ServiceAddress>, cache: Cache, policy: DialPolicy) -> Self {
        Self(Arc::new(Route {
            service,
            cache,
            policy,
            is_private: false,
        }))
    }

    /// Returns a dialer of the endpoints of a Service whose certificate is not verified: only addresses of private
    /// networks are called.
    pub(crate) fn private(service: ServiceAddress, cache: Cache, policy: DialPolicy) -> Self {
        Self(Arc::new(Route {
            service: Some(service),
            cache,
            policy,
            is_private: true,
        }))
    }
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        let route = self.0.clone();
        async move { route.dial(&url).await.map_err(io::Error::other) }.boxed()
    }
}

impl Route {
    /// Connects to the first address that accepts a connection.
    async fn dial(&self, url: &Uri) -> Result<TokioIo<TcpStream>, String> {
        let mut problem = "no address".to_owned();
        for address in self.addresses(url).await? {
            match self.connect(address).await {
                Ok(stream) => return Ok(TokioIo::new(stream)),
                Err(why) => problem = format!("dial tcp {address}: {why}"),
            }
        }
        Err(problem)
    }

    async fn addresses(&self, url: &Uri) -> Result<Vec<SocketAddr>, String> {
        let host = match &self.service {
            None => url.host().unwrap_or_default().to_owned(),
            Some(at) => match service::resolve(&self.cache, &at.service, at.port).await? {
                service::Target::Addresses(addresses) => return Ok(addresses),
                service::Target::Host(host) => host,
            },
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let found = lookup_host((host, url.port_u16().unwrap_or(HTTPS))).await;
        let found = found.map_err(|_| format!("dial tcp: lookup {host}: no such host"))?;
        Ok(found.collect())
    }

    async fn connect(&self, address: SocketAddr) -> Result<TcpStream, String> {
        let rule = match self.is_private {
            true => Rule::Unverified,
            false => Rule::Verified,
        };
        let connected = self.policy.connect(rule, address).await;
        connected.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => error.to_string(),
            io::ErrorKind::TimedOut => "i/o timeout".to_owned(),
            _ => format!("connect: {}", of_io(&error)),
        })
    }
}

#[cfg(test)]
mod tests {
    use setpoint_store::Memory;
    use setpoint_store::cache::Settings;
    use tokio::net::TcpListener;

    use super::*;

    /// Checks V5: a name says nothing about what is connected to; each address that it has now is checked, and that
    /// one is connected to.
    #[tokio::test]
    async fn the_addresses_of_a_name_are_checked() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cache = Cache::start(Arc::new(Memory::default()), Settings::default());
        let dial = async |policy: DialPolicy| {
            let url = format!("https://localhost:{port}/").parse().unwrap();
            let mut dialer = Dialer::new(None, cache.clone(), policy);
            let connected = dialer.call(url).await;
            connected.map(drop).map_err(|error| error.to_string())
        };
        let of_etcd = DialPolicy::except([port], 1);
        let refused = dial(of_etcd).await.unwrap_err();
        assert!(refused.contains("the gateway does not call"), "{refused}");
        assert!(listener.accept().now_or_never().is_none());
        assert_eq!(dial(DialPolicy::except([], 1)).await, Ok(()));
        assert!(listener.accept().await.is_ok());
    }
}
