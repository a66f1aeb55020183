//! The store on etcd 3.4 or later, with only what Kubernetes asks of it: ranges, conditional writes, one watch.
//!
//! etcd's client neither retries, nor times out, nor says which writes got lost. All of that is decided here:
//! reads are repeated until the deadline; writes only while it is certain that none was sent; and a write whose
//! answer got lost is looked up, in a task that outlives the caller.

mod commit;
mod doubt;
mod read;
mod settings;
mod trouble;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Client, ConnectOptions, KvClient, WatchClient};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use setpoint_model::Revision;
use tokio::sync::Semaphore;

use super::{Batch, Entry, Error, Page, Range, Store, Write};

pub use settings::Settings;

/// etcd closes connections that ping more often than every 5 s.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(3));

/// A store on etcd. Connects when first used, and again whenever it must.
#[derive(Clone)]
pub struct Etcd {
    kv: KvClient,
    /// On a connection of its own, so that a long list does not hold up changes.
    watch: WatchClient,
    /// Beyond about 128 transactions at once, etcd's watch falls behind for good.
    permits: Arc<Semaphore>,
    timeout: Duration,
}

impl Etcd {
    /// A store on the etcd that the settings name; it need not be up yet.
    ///
    /// # Errors
    /// When an endpoint is no address.
    pub async fn connect(settings: &Settings) -> Result<Self, Error> {
        let calls = client(settings).await?;
        let changes = client(settings).await?;
        Ok(Self {
            kv: calls
                .kv_client()
                .max_decoding_message_size(settings.message_limit),
            watch: changes
                .watch_client()
                .max_decoding_message_size(settings.message_limit),
            permits: Arc::new(Semaphore::new(settings.in_flight)),
            timeout: settings.timeout,
        })
    }
}

async fn client(settings: &Settings) -> Result<Client, Error> {
    let options = ConnectOptions::new()
        .with_connect_timeout(settings.connect_timeout)
        .with_keep_alive(KEEP_ALIVE.0, KEEP_ALIVE.1)
        .with_timeout(settings.timeout)
        .with_require_leader(true);
    let client = Client::connect(&settings.endpoints, Some(options)).await;
    client.map_err(|error| Error::Unavailable(error.to_string()))
}

/// etcd counts in i64, and never below zero.
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
        self.see_through(write).boxed()
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        self.read_revision().boxed()
    }

    fn watch(&self, after: Revision) -> BoxStream<'static, Result<Batch, Error>> {
        watch::follow(self.watch.clone(), after, self.timeout)
    }
}
