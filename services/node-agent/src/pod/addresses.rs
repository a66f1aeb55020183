//! Addresses of hosts in the network of Pods: IPs, or names that are looked up.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tracing::warn;

/// The time for which the addresses of a host name are known.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(60);
/// The delay after a lookup that has failed.
const LOOKUP_RETRY: Duration = Duration::from_secs(5);
/// Timeout of a lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Looks up the addresses of a host name in the network of Pods.
pub type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The addresses of some hosts.
pub struct Addresses {
    hosts: Vec<String>,
    lookup: Lookup,
    known: Mutex<Known>,
}

/// The addresses that were found last.
#[derive(Default)]
struct Known {
    addresses: BTreeSet<IpAddr>,
    /// The time of the next lookup.
    until: Option<Instant>,
}

impl Addresses {
    /// Returns those of these hosts.
    pub fn new(hosts: Vec<String>, lookup: Lookup) -> Self {
        Self {
            hosts,
            lookup,
            known: Mutex::default(),
        }
    }

    /// Returns the addresses. Host names are looked up once a minute at most; if that fails, the addresses stay as they
    /// are.
    pub async fn get(&self) -> BTreeSet<IpAddr> {
        let mut known = self.known.lock().await;
        let now = Instant::now();
        if known.until.is_none_or(|until| until <= now) {
            let delay = match self.find().await {
                Ok(addresses) => {
                    known.addresses = addresses;
                    LOOKUP_INTERVAL
                }
                Err(error) => {
                    warn!(%error, hosts = ?self.hosts, "cannot look up hosts for Pods");
                    LOOKUP_RETRY
                }
            };
            known.until = Some(now + delay);
        }
        known.addresses.clone()
    }

    async fn find(&self) -> io::Result<BTreeSet<IpAddr>> {
        let mut addresses = BTreeSet::new();
        for host in &self.hosts {
            match host.parse() {
                Ok(ip) => drop(addresses.insert(ip)),
                Err(_) => addresses.extend(self.look_up(host).await?),
            }
        }
        Ok(addresses)
    }

    async fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = timeout(LOOKUP_TIMEOUT, (self.lookup)(host.to_owned())).await;
        let found = found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        match found.is_empty() {
            true => Err(io::ErrorKind::NotFound.into()),
            false => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicU8, Ordering};

    use futures::FutureExt as _;
    use tokio::time::advance;

    use super::*;

    /// Returns the addresses of `gateway`, whose last octet is the number; the lookup fails for zero.
    fn named(octet: &Arc<AtomicU8>) -> Addresses {
        let octet = Arc::clone(octet);
        let lookup: Lookup = Arc::new(move |host| {
            assert_eq!(host, "gateway");
            let found = match octet.load(Ordering::Relaxed) {
                0 => Vec::new(),
                octet => vec![Ipv4Addr::new(10, 0, 0, octet).into()],
            };
            async move { Ok(found) }.boxed()
        });
        Addresses::new(vec!["gateway".to_owned()], lookup)
    }

    async fn address(addresses: &Addresses) -> String {
        let found = addresses.get().await.into_iter();
        found.map(|ip| ip.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_looked_up_once_a_minute_and_keeps_its_addresses_if_that_fails() {
        let octet = Arc::new(AtomicU8::new(0));
        let addresses = named(&octet);
        assert_eq!(address(&addresses).await, "");
        octet.store(1, Ordering::Relaxed);
        assert_eq!(address(&addresses).await, "", "the next attempt is later");
        advance(LOOKUP_RETRY).await;
        assert_eq!(address(&addresses).await, "10.0.0.1");
        octet.store(2, Ordering::Relaxed);
        advance(LOOKUP_INTERVAL / 2).await;
        assert_eq!(address(&addresses).await, "10.0.0.1");
        advance(LOOKUP_INTERVAL / 2).await;
        assert_eq!(address(&addresses).await, "10.0.0.2");
        octet.store(0, Ordering::Relaxed);
        advance(LOOKUP_INTERVAL).await;
        assert_eq!(address(&addresses).await, "10.0.0.2");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lookup_that_does_not_end_delays_a_pod_by_its_timeout() {
        let pending: Lookup = Arc::new(|_| futures::future::pending().boxed());
        let addresses = Addresses::new(vec!["gateway".to_owned()], pending);
        let begin = Instant::now();
        assert!(addresses.get().await.is_empty());
        assert_eq!(begin.elapsed(), LOOKUP_TIMEOUT);
    }
}
