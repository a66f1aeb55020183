//! The gateway over a store in memory, in this process and in paused time, behind a layer that injects faults.

mod faulty;
mod wire;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use setpoint_codec::{Kind, envelope, kinds};
use setpoint_controller::{Client, client};
use setpoint_gateway::in_process;
use setpoint_model::Key;
use setpoint_proto::core::{ConfigMap, Namespace};
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::objects_server::ObjectsServer;
use setpoint_proto::{Cause, Resource};
use setpoint_store::cache::Settings;
use setpoint_store::{Entry, Error, Memory, Range, Store as _, Write, keys};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

pub use faulty::{Answers, Faults};
use faulty::{Faulty, State};

/// A gateway. The methods that read and write objects act on its store, as another gateway would.
pub struct Server {
    store: Memory,
    state: watch::Sender<State>,
    calls: Calls,
    wires: wire::Wires,
}

/// The number of calls received, by name.
type Calls = Arc<Mutex<HashMap<&'static str, usize>>>;

impl Server {
    /// Starts a gateway that has the namespace `default`.
    pub async fn start() -> Self {
        let (wires, incoming) = wire::Wires::new();
        let server = Self {
            store: Memory::default(),
            state: watch::Sender::default(),
            calls: Calls::default(),
            wires,
        };
        server.put(&namespace("default"));
        let store = Arc::new(server.store.clone());
        let registry = in_process::registry(store, Settings::default()).await;
        let service = ObjectsServer::new(Faulty {
            gateway: ObjectsClient::new(in_process::router(registry)),
            state: server.state.subscribe(),
            calls: server.calls.clone(),
        });
        let served = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(async move { served.serve_with_incoming(incoming).await.unwrap() });
        server
    }

    /// Returns a client with a connection of its own.
    pub fn client(&self, writer: &str) -> Client {
        let settings = client::Settings {
            address: "http://server".into(),
            timeout: Duration::from_secs(10),
            ..client::Settings::default()
        };
        let endpoint = Client::endpoint(&settings).unwrap();
        let channel = endpoint.connect_with_connector_lazy(self.wires.connector());
        Client::over(channel, &settings, writer)
    }

    /// Silently drops the bytes on all present connections. New connections work.
    pub fn cut_wires(&self) {
        self.wires.cut();
    }

    /// Ends all watches, as a gateway does that stops.
    pub fn break_watches(&self) {
        self.state.send_modify(|state| state.epoch += 1);
    }

    /// Refuses to resume watches from before now.
    pub fn compact(&self) {
        let now = self.revision();
        self.state.send_modify(|state| state.compacted = now);
    }

    /// Injects these faults, and ends all others.
    pub fn set_faults(&self, faults: Faults) {
        self.state.send_modify(|state| state.faults = faults);
    }

    /// Writes an object, with a new uid if it has none.
    pub fn put<T: Resource>(&self, object: &T) -> T {
        self.write(object, None)
    }

    /// As [`Self::put`], with a cause.
    pub fn put_because<T: Resource>(&self, object: &T, cause: Cause) -> T {
        self.write(object, Some(cause))
    }

    fn write<T: Resource>(&self, object: &T, cause: Option<Cause>) -> T {
        let mut object = object.clone();
        let meta = object.meta_mut();
        meta.resource_version.clear();
        if meta.uid.is_empty() {
            meta.uid = format!("uid-{}", self.revision() + 1);
        }
        let (key, raw) = (key(&object), object.encode_to_vec());
        let value = envelope::write(T::API_VERSION, T::KIND, &raw, cause.as_ref());
        let write = match self.entry(&key) {
            Some(entry) => Write::update(key, entry.revision, value),
            None => Write::create(key, value),
        };
        let revision = done(self.store.commit(write));
        object.meta_mut().resource_version = revision.to_string();
        object
    }

    /// Deletes an object.
    pub fn remove<T: Resource>(&self, object: &T) {
        let key = key(object);
        let revision = self.entry(&key).unwrap().revision;
        done(self.store.commit(Write::delete(key, revision)));
    }

    pub fn get<T: Resource>(&self, namespace: &str, name: &str) -> Option<T> {
        let key = keys::object(kind::<T>(), &Key::new(namespace, name));
        Some(object(&self.entry(&key)?))
    }

    pub fn all<T: Resource>(&self) -> Vec<T> {
        let range = Range::all(keys::prefix(kind::<T>(), ""));
        done(self.store.list(range))
            .entries
            .iter()
            .map(object)
            .collect()
    }

    /// Returns the cause of an object's last write.
    pub fn cause<T: Resource>(&self, object: &T) -> Option<Cause> {
        let entry = self.entry(&key(object))?;
        envelope::read(&entry.value).unwrap().cause
    }

    pub fn revision(&self) -> u64 {
        done(self.store.revision()).raw()
    }

    /// Returns the number of calls of this name (`Watch` …) received; `Initial` are the watches that asked for the
    /// state.
    pub fn calls(&self, name: &str) -> usize {
        self.calls.lock().get(name).copied().unwrap_or_default()
    }

    fn entry(&self, key: &str) -> Option<Entry> {
        done(self.store.get(key))
    }
}

/// Returns the result of a call of the store in memory, which never waits.
fn done<T>(answer: BoxFuture<'_, Result<T, Error>>) -> T {
    answer.now_or_never().unwrap().unwrap()
}

fn kind<T: Resource>() -> &'static Kind {
    kinds().by_resource(T::RESOURCE).unwrap()
}

fn key<T: Resource>(object: &T) -> String {
    keys::object(kind::<T>(), &Key::of(object.meta()))
}

fn object<T: Resource>(entry: &Entry) -> T {
    let raw = envelope::read(&entry.value).unwrap().raw;
    T::decode(envelope::with_revision(&raw, &entry.revision.to_string())).unwrap()
}

/// Waits until `check` returns true, at most a minute of paused time.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> F) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !check().await {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Waits for a future, at most a minute of paused time.
pub async fn soon<F: Future>(future: F) -> F::Output {
    let limit = Duration::from_secs(60);
    timeout(limit, future)
        .await
        .expect("it happens within a minute")
}

pub fn config_map(name: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.namespace = "default".into();
    object.metadata.name = name.into();
    object
}

pub fn namespace(name: &str) -> Namespace {
    let mut namespace = Namespace::default();
    namespace.metadata.name = name.into();
    namespace
}
