//! The store on etcd 3.4 or later. It uses the part of etcd that Kubernetes uses: ranges, conditional writes, one
//! watch.
//!
//! etcd's client neither retries, nor times out, nor reports whether a failed write was sent. This adapter repeats
//! reads until their deadline, repeats writes only if none was sent, and reads the outcome of a write whose response
//! was lost from the history of its key, in a task that runs on if the caller is dropped.

mod commit;
mod connector;
mod error_class;
mod follow;
mod members;
pub mod membership;
mod read;
mod watch;

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use etcd_client::proto::PbResponseHeader;
use etcd_client::{Channel, Client, ClusterClient, ConnectOptions, KvClient, WatchClient};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use setpoint_model::Revision;
use setpoint_tls::Credentials;
use setpoint_transport::EarlyEnd;
use tokio::sync::Semaphore;
use tonic::transport::{self, Endpoint};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

use self::connector::Connector;
use self::members::Members;
use super::{Batch, Entry, Error, KeyChange, Page, Range, Store, Write};

/// The interval and timeout of pings. etcd closes connections that ping more often than every 5 s.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(3));

/// The connection to etcd.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The client URLs of etcd's members.
    pub endpoints: Vec<String>,
    /// The time that a connection may take to be established.
    pub connect_timeout: Duration,
    /// The time that a call may take, repeats included.
    pub timeout: Duration,
    /// The largest number of writes in flight. All gateways together should stay below 128.
    pub in_flight: usize,
    /// The largest response that is decoded, in bytes. A page beyond it is requested again in smaller ones.
    pub message_limit: usize,
    /// The certificate of this process and the CAs of etcd, for endpoints of HTTPS. New connections use what they are
    /// by then.
    pub credentials: Option<Credentials>,
    /// Whether [`Etcd::follow_members`] may change the members that calls go to.
    pub follow_members: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            endpoints: vec!["http://127.0.0.1:2379".into()],
            connect_timeout: Duration::from_secs(2),
            timeout: Duration::from_secs(5),
            in_flight: 64,
            // Pages of large objects exceed tonic's default of 4 MiB, and so do revisions that touch many keys.
            message_limit: 64 << 20,
            credentials: None,
            follow_members: false,
        }
    }
}

/// A store on etcd. It connects when first used, and again after the connection is lost.
#[derive(Clone)]
pub struct Etcd {
    kv: KvClient,
    /// On its own connection, so that long lists do not delay changes.
    watch: WatchClient,
    /// For the list of members.
    cluster: ClusterClient,
    /// The members that calls, and changes, come from; none unless they may change.
    members: Vec<Members>,
    settings: Arc<Settings>,
    /// Limits the transactions in flight: beyond about 128, etcd's watch falls behind and does not recover.
    permits: Arc<Semaphore>,
    timeout: Duration,
    /// The newest revision in any answer to this process.
    seen: Arc<AtomicU64>,
}

impl Etcd {
    /// Returns a store on the etcd at the endpoints of the settings. etcd need not be up yet.
    ///
    /// # Errors
    /// `Unavailable` if an endpoint is not a URL, or one of HTTPS without credentials.
    pub async fn connect(settings: &Settings) -> Result<Self, Error> {
        let (calls, members) = connected(settings).await?;
        let (changes, others) = connected(settings).await?;
        Ok(Self {
            cluster: calls.cluster_client(),
            members: members.into_iter().chain(others).collect(),
            settings: Arc::new(settings.clone()),
            kv: calls
                .kv_client()
                .max_decoding_message_size(settings.message_limit),
            watch: changes
                .watch_client()
                .max_decoding_message_size(settings.message_limit),
            permits: Arc::new(Semaphore::new(settings.in_flight)),
            timeout: settings.timeout,
            seen: Arc::default(),
        })
    }

    /// Returns the revision in the header of an answer. Later writes have greater ones.
    fn see(&self, header: Option<&PbResponseHeader>) -> Revision {
        let revision = revision(header.map_or(0, |header| header.revision));
        self.seen.fetch_max(revision.raw(), Ordering::Relaxed);
        revision
    }

    /// Returns the newest revision that this process knows the store to have reached.
    fn seen(&self) -> Revision {
        Revision::from_raw(self.seen.load(Ordering::Relaxed))
    }
}

/// Returns a client of the endpoints of the settings, which connects when it is first used.
pub(crate) async fn client(settings: &Settings) -> Result<Client, Error> {
    Ok(connected(settings).await?.0)
}

/// Returns such a client, and the members that its calls go to if these may change.
async fn connected(settings: &Settings) -> Result<(Client, Option<Members>), Error> {
    let channels = settings.endpoints.iter();
    let channels = channels.map(|url| Ok((url.clone(), channel(url, settings)?)));
    let channels: Vec<_> = channels.collect::<Result<_, Error>>()?;
    let (channel, members) = match channels.as_slice() {
        // Choosing among members takes time in each call.
        [(_, only)] if !settings.follow_members => {
            let only = EarlyEnd::new(only.clone()).map_err(BoxError::from);
            (BoxCloneSyncService::new(only), None)
        }
        _ => {
            let members = Members::new(channels);
            let service = members.clone().map_err(BoxError::from);
            (BoxCloneSyncService::new(service), Some(members))
        }
    };
    let options = ConnectOptions::new().with_require_leader(true);
    let client = Client::from_channel(Channel::Custom(channel), Some(options)).await;
    let client = client.map_err(|error| Error::Unavailable(error.to_string()))?;
    Ok((client, members.filter(|_| settings.follow_members)))
}

/// Returns the channel to a member, which connects when it is first used.
fn channel(url: &str, settings: &Settings) -> Result<transport::Channel, Error> {
    let endpoint = endpoint(url, settings)?;
    match &settings.credentials {
        _ if !url.starts_with("https://") => Ok(endpoint.connect_lazy()),
        Some(credentials) => Ok(endpoint.connect_with_connector_lazy(Connector::new(credentials))),
        None => Err(unusable(url, &"TLS needs a CA, a certificate and a key")),
    }
}

fn endpoint(url: &str, settings: &Settings) -> Result<Endpoint, Error> {
    let scheme = if url.contains("://") { "" } else { "http://" };
    let endpoint = Endpoint::from_shared(format!("{scheme}{url}"));
    Ok(endpoint
        .map_err(|error| unusable(url, &error))?
        .connect_timeout(settings.connect_timeout)
        .keep_alive_while_idle(true)
        .http2_keep_alive_interval(KEEP_ALIVE.0)
        .keep_alive_timeout(KEEP_ALIVE.1)
        .timeout(settings.timeout))
}

fn unusable(url: &str, why: &dyn Display) -> Error {
    Error::Unavailable(format!("{url}: {why}"))
}

/// Converts a revision of etcd, which is an `i64` but never negative.
fn revision(raw: i64) -> Revision {
    Revision::from_raw(raw.try_into().unwrap_or_default())
}

/// The inverse of [`revision`].
fn raw(revision: Revision) -> i64 {
    revision.raw().try_into().unwrap_or(i64::MAX)
}

impl Store for Etcd {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, Error>> {
        self.read_one(key).boxed()
    }

    fn get_at<'a>(
        &'a self,
        key: &'a str,
        at: Revision,
    ) -> BoxFuture<'a, Result<Option<Entry>, Error>> {
        self.read_past(key, at).boxed()
    }

    fn list(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>> {
        self.read_page(range).boxed()
    }

    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Error>> {
        self.commit_detached(write).boxed()
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        self.read_revision().boxed()
    }

    fn watch(&self, after: Revision) -> BoxStream<'static, Result<Batch, Error>> {
        watch::follow(self.watch.clone(), after, self.timeout)
    }

    fn watch_key(
        &self,
        key: &str,
        after: Revision,
    ) -> BoxStream<'static, Result<KeyChange, Error>> {
        watch::follow_key(self.watch.clone(), key.to_owned(), after, self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_endpoint_that_cannot_be_reached_in_any_case_is_refused_with_its_name() {
        for (url, why) in [
            (
                "https://etcd:2379",
                "TLS needs a CA, a certificate and a key",
            ),
            ("http://a b", "invalid URI"),
        ] {
            let settings = Settings {
                endpoints: vec![url.to_owned()],
                ..Settings::default()
            };
            let refused = Etcd::connect(&settings).await.err();
            assert_eq!(refused, Some(Error::Unavailable(format!("{url}: {why}"))));
        }
    }
}
