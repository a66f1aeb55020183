//! Forwards questions to upstream servers, and keeps their answers.
//!
//! A question has one deadline for all servers. It goes to the server that answered last, and to the next one after a
//! timeout. A server that this process reaches itself through (a loop) is not asked any more.

mod cache;
mod loops;
mod resolv_conf;
mod upstream;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hickory_proto::op::{Message, Query};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tracing::debug;

use crate::metrics;
use cache::Cache;
pub use cache::Settings as CacheSettings;
pub use loops::Loops;
pub use resolv_conf::ResolvConf;

/// The port of DNS.
pub const PORT: u16 = 53;

/// Settings of forwarding.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Addresses of the servers that are asked for names outside of the cluster, for example `10.0.0.2` or
    /// `10.0.0.2:5353`; empty for those of `/etc/resolv.conf`, `none` for none.
    pub upstreams: Vec<String>,
    /// Timeout of one server.
    #[serde(with = "DurationText")]
    pub timeout: Duration,
    /// Timeout of a question, after which it fails (SERVFAIL).
    #[serde(with = "DurationText")]
    pub deadline: Duration,
    /// Maximum number of questions that wait for servers; more are refused.
    pub concurrent: usize,
    /// The cache of their answers.
    pub cache: CacheSettings,
}

pub use Settings as ForwardSettings;

impl Default for Settings {
    fn default() -> Self {
        Self {
            upstreams: Vec::new(),
            timeout: Duration::from_secs(2),
            deadline: Duration::from_secs(5),
            concurrent: 1000,
            cache: CacheSettings::default(),
        }
    }
}

impl Settings {
    /// Returns the servers of the setting; `None` for those of `/etc/resolv.conf`.
    ///
    /// # Errors
    /// The first address that is none.
    pub fn servers(&self) -> Result<Option<Vec<SocketAddr>>, String> {
        match &*self.upstreams {
            [] => Ok(None),
            [none] if none == "none" => Ok(Some(Vec::new())),
            servers => servers
                .iter()
                .map(|one| parse(one))
                .collect::<Result<_, _>>()
                .map(Some),
        }
    }
}

fn parse(server: &str) -> Result<SocketAddr, String> {
    let with_port = server.parse().ok();
    let ip = || Some(SocketAddr::new(server.parse().ok()?, PORT));
    let parsed = with_port.or_else(ip);
    parsed.ok_or_else(|| {
        format!("forward.upstreams: {server:?} is not an address such as 10.0.0.2:53")
    })
}

/// The reason why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Too many questions wait.
    #[error("too many questions wait for upstream servers")]
    Busy,
    /// No server has answered in time, or there is none.
    #[error("no upstream server has answered")]
    Failed,
}

/// Asks upstream servers. Clones are the same one.
#[derive(Clone)]
pub struct Forwarder(Arc<Shared>);

struct Shared {
    servers: Vec<SocketAddr>,
    settings: Settings,
    /// The number of the server that answered last.
    preferred: AtomicUsize,
    permits: Semaphore,
    cache: Mutex<Cache>,
    loops: Loops,
}

impl Forwarder {
    /// Returns a forwarder to these servers.
    pub fn new(servers: Vec<SocketAddr>, settings: Settings) -> Self {
        Self(Arc::new(Shared {
            preferred: AtomicUsize::new(0),
            permits: Semaphore::new(settings.concurrent),
            cache: Mutex::new(Cache::new(&settings.cache)),
            loops: Loops::new(servers.len()),
            servers,
            settings,
        }))
    }

    /// Returns the watch over loops.
    pub fn loops(&self) -> &Loops {
        &self.0.loops
    }

    /// Returns a kept answer, whose TTLs are what is left of them.
    pub fn cached(&self, query: &Query, dnssec: bool) -> Option<Message> {
        let found = self.0.cache.lock().get(query, dnssec, Instant::now());
        metrics::cache_read(found.as_ref());
        found
    }

    /// Asks the servers.
    ///
    /// # Errors
    /// If too many questions wait already, or none answers in time.
    pub async fn ask(&self, query: &Query, dnssec: bool) -> Result<Message, Error> {
        let Ok(_permit) = self.0.permits.try_acquire() else {
            metrics::rejected();
            return Err(Error::Busy);
        };
        let deadline = Instant::now() + self.0.settings.deadline;
        let asking = self.first_answer(query, dnssec);
        let answer = timeout_at(deadline, asking).await;
        let answer = answer.ok().flatten().ok_or(Error::Failed)?;
        let kept = &mut *self.0.cache.lock();
        kept.insert(query, dnssec, &answer, Instant::now());
        metrics::cache_size(kept.len());
        Ok(answer)
    }

    async fn first_answer(&self, query: &Query, dnssec: bool) -> Option<Message> {
        let count = self.0.servers.len();
        let first = self.0.preferred.load(Ordering::Relaxed);
        for number in (0..count).map(|offset| (first + offset) % count) {
            if self.0.loops.is_looping(number) {
                continue;
            }
            let server = self.0.servers[number];
            let started = Instant::now();
            let asked = upstream::ask(server, query, dnssec, self.0.settings.timeout).await;
            metrics::forwarded(server, started, asked.as_ref().ok());
            match asked {
                Ok(answer) => {
                    self.0.preferred.store(number, Ordering::Relaxed);
                    return Some(answer);
                }
                Err(error) => debug!(%server, %error, "an upstream server has not answered"),
            }
        }
        None
    }

    /// Asks each server once for a name that nobody else asks for. If that question arrives at this process, the
    /// server leads back here.
    pub async fn probe_loops(&self) {
        for (number, server) in self.0.servers.iter().enumerate() {
            if let Some(query) = self.0.loops.probe(number) {
                // The answer does not matter.
                let _ = upstream::ask(*server, &query, false, self.0.settings.timeout).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(upstreams: &[&str]) -> Result<Option<Vec<SocketAddr>>, String> {
        let upstreams = upstreams.iter().map(|one| (*one).to_owned()).collect();
        Settings {
            upstreams,
            ..Settings::default()
        }
        .servers()
    }

    #[test]
    fn servers_have_the_port_of_dns_unless_they_name_another() {
        let expected = ["10.0.0.2:53", "10.0.0.3:5353", "[fd00::1]:53"];
        let expected = expected.map(|one| one.parse().unwrap()).to_vec();
        assert_eq!(
            servers(&["10.0.0.2", "10.0.0.3:5353", "fd00::1"]),
            Ok(Some(expected))
        );
        assert_eq!(servers(&[]), Ok(None));
        assert_eq!(servers(&["none"]), Ok(Some(Vec::new())));
        assert!(
            servers(&["dns.example"])
                .unwrap_err()
                .contains("\"dns.example\"")
        );
    }
}
