//! A gateway of a few hundred lines, in memory, that can be told to fail.

mod service;
mod wire;
mod world;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_controller::{Client, client};
use setpoint_proto::core::ConfigMap;
use setpoint_proto::setpoint::objects_server::ObjectsServer;
use setpoint_proto::{ApiError, Cause, Resource};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use world::World;

/// What goes wrong, until it is set right again.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Calls of this name (`Watch` …) and writes of this writer are never answered.
    pub hang: Vec<&'static str>,
    /// Updates are committed, but their answers are lost.
    pub lose_answers: bool,
    /// Creates fail with this.
    pub refuse_creates: Option<ApiError>,
    /// Updates fail with this.
    pub refuse_updates: Option<ApiError>,
    /// Watches of this resource say nothing of what happens after this revision.
    pub mute: Option<(&'static str, u64)>,
    /// Watches break after so many events of the initial state.
    pub break_initial_after: Option<usize>,
}

/// The gateway, seen from behind.
#[derive(Clone)]
pub struct Fake {
    world: Arc<Mutex<World>>,
    /// Goes up with every change of the world or the faults.
    changed: watch::Sender<u64>,
    wires: wire::Wires,
}

impl Fake {
    pub fn start() -> Self {
        let (wires, incoming) = wire::Wires::new();
        let fake = Self {
            world: Arc::default(),
            changed: watch::Sender::new(0),
            wires,
        };
        let service = ObjectsServer::new(service::Service(fake.clone()));
        let server = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(async move { server.serve_with_incoming(incoming).await.unwrap() });
        fake
    }

    /// A client with a connection of its own.
    pub fn gateway(&self, writer: &str) -> Client {
        let settings = client::Settings {
            address: "http://fake".into(),
            timeout: Duration::from_secs(10),
        };
        let endpoint = Client::endpoint(&settings).unwrap();
        let channel = endpoint.connect_with_connector_lazy(self.wires.connector());
        Client::over(channel, &settings, writer)
    }

    /// Silently drops what is sent over all present connections. New connections work.
    pub fn cut_wires(&self) {
        self.wires.cut();
    }

    /// Ends all watches, as a gateway does that goes away.
    pub fn break_watches(&self) {
        self.change(|world| world.epoch += 1);
    }

    /// Forgets the past: watches cannot resume from before now.
    pub fn compact(&self) {
        self.change(World::compact);
    }

    pub fn set_faults(&self, faults: Faults) {
        self.change(|world| world.faults = faults);
    }

    pub fn faults(&self) -> Faults {
        self.world.lock().faults.clone()
    }

    pub fn put<T: Resource>(&self, object: &T) -> T {
        self.change(|world| world.put(object, None))
    }

    /// As if a write with this cause had come over the wire.
    pub fn put_because<T: Resource>(&self, object: &T, cause: Cause) -> T {
        self.change(|world| world.put(object, Some(cause)))
    }

    /// Why an object is as it is.
    pub fn cause<T: Resource>(&self, object: &T) -> Option<Cause> {
        let meta = object.meta();
        let world = self.world.lock();
        let object = world.find(T::RESOURCE, &meta.namespace, &meta.name);
        object.unwrap().cause
    }

    pub fn remove<T: Resource>(&self, object: &T) {
        let meta = object.meta();
        self.change(|world| world.remove(T::RESOURCE, &meta.namespace, &meta.name))
            .unwrap();
    }

    pub fn get<T: Resource>(&self, namespace: &str, name: &str) -> Option<T> {
        self.world.lock().get(T::RESOURCE, namespace, name)
    }

    pub fn all<T: Resource>(&self) -> Vec<T> {
        self.world.lock().all(T::RESOURCE)
    }

    /// Lets every watch of this resource know how far the world is.
    pub fn bookmark(&self) {
        self.change(|world| world.bookmarks += 1);
    }

    pub fn revision(&self) -> u64 {
        self.world.lock().revision
    }

    /// How often a call of this name was received.
    pub fn calls(&self, name: &str) -> usize {
        self.world
            .lock()
            .calls
            .get(name)
            .copied()
            .unwrap_or_default()
    }

    fn change<R>(&self, change: impl FnOnce(&mut World) -> R) -> R {
        let result = change(&mut self.world.lock());
        self.changed.send_modify(|version| *version += 1);
        result
    }
}

/// Waits until something is so; a minute of paused time is for ever.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> F) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !check().await {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Waits for a future; a minute of paused time is for ever.
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
