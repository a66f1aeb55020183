//! Watchers of ConfigMaps that record the revisions they receive.

use std::sync::Arc;

use parking_lot::Mutex;
use setpoint_controller::client::Settings;
use setpoint_controller::{Client, Reader, Whole};
use setpoint_model::Revision;
use setpoint_proto::core::ConfigMap;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Address;
use crate::wait::{DEADLINE, PAUSE};

/// The revisions that one watcher received, in the order of delivery.
type Received = Arc<Mutex<Vec<u64>>>;

/// Watchers on several clients; each client has a connection of its own.
pub struct Watchers {
    watchers: Vec<(Received, Reader<Whole<ConfigMap>>)>,
    _stop: DropGuard,
}

/// Creates a client of the gateways at these addresses.
///
/// # Panics
/// If one of them is not a URI.
pub fn client(gateways: &Address) -> Client {
    let settings = Settings {
        address: gateways.to_string(),
        ..Default::default()
    };
    let client = Client::connect_with(&settings, gateways.credentials().cloned(), "test");
    client.expect("the addresses are URIs")
}

impl Watchers {
    /// Starts `each` watchers on each of `clients` clients; returns when all caches are filled.
    pub async fn start(gateways: &Address, clients: usize, each: usize) -> Self {
        let stop = CancellationToken::new();
        let watchers = (0..clients).map(|_| client(gateways)).flat_map(|gateway| {
            let stop = stop.clone();
            (0..each).map(move |_| watch(&gateway, stop.clone()))
        });
        let watchers = Self {
            watchers: watchers.collect(),
            _stop: stop.drop_guard(),
        };
        for (received, reader) in &watchers.watchers {
            in_time("a watcher has synced", reader.synced()).await;
            received.lock().clear();
        }
        watchers
    }

    /// Waits until every watcher has reached this revision. It polls, because waiting on a reader would make its
    /// watcher list again after a short time without events.
    pub async fn wait_for(&self, revision: Revision) {
        for (_, reader) in &self.watchers {
            let reached = async {
                while reader.reached() < revision {
                    sleep(PAUSE).await;
                }
            };
            in_time("a watcher reaches the revision", reached).await;
        }
    }

    /// Returns the revisions that each watcher has received since its start.
    pub fn received(&self) -> Vec<Vec<u64>> {
        let received = self.watchers.iter();
        received
            .map(|(received, _)| received.lock().clone())
            .collect()
    }
}

fn watch(gateway: &Client, stop: CancellationToken) -> (Received, Reader<Whole<ConfigMap>>) {
    let received = Received::default();
    let record = received.clone();
    let informer = gateway.informer::<Whole<ConfigMap>>();
    let reader = informer.reader();
    let informer = informer.on_event(move |delta| {
        record.lock().push(delta.revision.raw());
    });
    tokio::spawn(informer.run(stop));
    (received, reader)
}

async fn in_time(what: &str, work: impl Future<Output = ()>) {
    let done = timeout(DEADLINE, work).await;
    done.unwrap_or_else(|_| panic!("not within {DEADLINE:?}: {what}"));
}
