//! Counts the writes of former leaders that the gateways refused, from their metrics.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::http::header::HOST;
use futures::future::join_all;
use rustls::pki_types::ServerName;
use setpoint_host::http_client::{self, Answer};
use setpoint_tls::{ClientStream, Credentials};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The counter of refused writes; one time series per lease.
const COUNTER: &str = "setpoint_fenced_writes_total";
/// Limit for the size of a gateway's metrics.
const MAX_BYTES: usize = 8 << 20;
const TIMEOUT: Duration = Duration::from_secs(2);

/// The gateways whose metrics are read.
pub struct Gateways {
    /// Their addresses.
    pub addresses: Vec<SocketAddr>,
    /// Those of an administrator.
    pub credentials: Credentials,
}

/// The count of each gateway, by address, since its start. Gateways that do not answer are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fenced(BTreeMap<SocketAddr, u64>);

impl Fenced {
    /// Reads the metrics of all gateways.
    pub async fn fetch(gateways: &Gateways) -> Self {
        let credentials = &gateways.credentials;
        let fetched = gateways.addresses.iter().map(|address| async move {
            let answer = timeout(TIMEOUT, metrics(credentials, *address)).await;
            Some((*address, sum(&answer.ok()?.ok()?.body)))
        });
        Self(join_all(fetched).await.into_iter().flatten().collect())
    }

    /// Returns the number of writes refused since `earlier`. A restarted gateway counts from zero again.
    pub fn since(&self, earlier: &Self) -> u64 {
        let grown = self.0.iter().map(|(gateway, now)| {
            let before = earlier.0.get(gateway).copied().unwrap_or_default();
            now.checked_sub(before).unwrap_or(*now)
        });
        grown.sum()
    }
}

/// Reads the metrics of the gateway at this address. Its certificate has the name of the service; that of a container
/// has no address.
async fn metrics(credentials: &Credentials, address: SocketAddr) -> anyhow::Result<Answer> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("gateway")?;
    let stream = ClientStream::handshake(credentials.http1_client(), name, stream).await?;
    let request = Request::get("/metrics").header(HOST, address.to_string());
    http_client::send_on(stream, request.body(Body::empty())?, MAX_BYTES).await
}

fn sum(metrics: &str) -> u64 {
    let lines = metrics.lines().filter(|line| line.starts_with(COUNTER));
    let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    values.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_all_leases_are_added() {
        let metrics = "# TYPE setpoint_fenced_writes_total counter\n\
            setpoint_fenced_writes_total{lease=\"a\"} 2\nsetpoint_fenced_writes_total{lease=\"b\"} 3\nother 9\n";
        assert_eq!(sum(metrics), 5);
    }

    #[test]
    fn a_gateway_that_was_restarted_has_counted_from_zero() {
        let gateway = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let before = Fenced([(gateway(1), 7), (gateway(2), 4)].into());
        let now = Fenced([(gateway(1), 2), (gateway(2), 5), (gateway(3), 1)].into());
        assert_eq!(now.since(&before), 2 + 1 + 1);
    }
}
