//! A crowd of watchers of ConfigMaps, each of which notes what it was told.

use std::sync::Arc;

use parking_lot::Mutex;
use setpoint_controller::client::Settings;
use setpoint_controller::{Client, Reader, Whole};
use setpoint_model::Revision;
use setpoint_proto::core::ConfigMap;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::wait::{DEADLINE, PAUSE};

/// The revisions that one watcher was told of, in that order.
type Told = Arc<Mutex<Vec<u64>>>;

/// Watchers, over clients that each have a connection of their own.
pub struct Audience {
    watchers: Vec<(Told, Reader<Whole<ConfigMap>>)>,
    _stop: DropGuard,
}

/// A client of these gateways.
///
/// # Panics
/// When one of them is no URI.
pub fn client(urls: &str) -> Client {
    let settings = Settings {
        address: urls.to_owned(),
        ..Default::default()
    };
    Client::connect(&settings, "test").expect("the addresses are URIs")
}

impl Audience {
    /// So many watchers on each of so many clients; returns when all have the state as it is.
    pub async fn gather(urls: &str, clients: usize, each: usize) -> Self {
        let stop = CancellationToken::new();
        let watchers = (0..clients).map(|_| client(urls)).flat_map(|gateway| {
            let stop = stop.clone();
            (0..each).map(move |_| watch(&gateway, stop.clone()))
        });
        let audience = Self {
            watchers: watchers.collect(),
            _stop: stop.drop_guard(),
        };
        for (told, reader) in &audience.watchers {
            in_time("a watcher has synced", reader.synced()).await;
            told.lock().clear();
        }
        audience
    }

    /// Waits until every watcher has come to this revision. It only looks: a reader that waited would make its watcher
    /// ask for the whole state after a short silence.
    pub async fn reach(&self, revision: Revision) {
        for (_, reader) in &self.watchers {
            let there = async {
                while reader.reached() < revision {
                    sleep(PAUSE).await;
                }
            };
            in_time("a watcher gets there", there).await;
        }
    }

    /// What each watcher was told since it was there.
    pub fn told(&self) -> Vec<Vec<u64>> {
        let told = self.watchers.iter();
        told.map(|(told, _)| told.lock().clone()).collect()
    }
}

fn watch(gateway: &Client, stop: CancellationToken) -> (Told, Reader<Whole<ConfigMap>>) {
    let told = Told::default();
    let notes = told.clone();
    let informer = gateway.informer::<Whole<ConfigMap>>();
    let reader = informer.reader();
    let informer = informer.on_event(move |delta| {
        notes.lock().push(delta.revision.raw());
    });
    tokio::spawn(informer.run(stop));
    (told, reader)
}

async fn in_time(what: &str, work: impl Future<Output = ()>) {
    let done = timeout(DEADLINE, work).await;
    done.unwrap_or_else(|_| panic!("not within {DEADLINE:?}: {what}"));
}
