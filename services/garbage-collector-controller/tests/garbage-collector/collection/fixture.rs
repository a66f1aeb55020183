//! A gateway with one namespace, and the collector.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use setpoint_controller::{Client, Controller, QueueHandle, Recorder, View, Whole, client};
use setpoint_garbage_collector_controller::Collector;
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::Key;
use setpoint_proto::core::{ConfigMap, Namespace};
use setpoint_proto::meta::{DeleteOptions, OwnerReference};
use setpoint_proto::{ApiError, Reason, Resource};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

pub const NAMESPACE: &str = "shop";
const NAME: &str = "garbage-collector-controller";

pub struct Fixture {
    pub client: Client,
    pub gateway: InProcess,
    _collector: Option<DropGuard>,
}

impl Fixture {
    /// Starts a gateway with the namespace [`NAMESPACE`].
    pub async fn start() -> Self {
        let gateway = in_process::start().await;
        let fixture = Self {
            client: connect(&gateway.url),
            gateway,
            _collector: None,
        };
        fixture.create_namespace(NAMESPACE).await;
        fixture
    }

    /// Starts a gateway and the collector.
    pub async fn running() -> Self {
        let mut fixture = Self::start().await;
        fixture._collector = Some(fixture.run());
        fixture
    }

    /// Runs the collector until the guard is dropped.
    pub fn run(&self) -> DropGuard {
        run(connect(&self.gateway.url))
    }

    pub async fn create_namespace(&self, name: &str) {
        let mut namespace = Namespace::default();
        namespace.metadata.name = name.into();
        self.client.create(&namespace).await.unwrap();
    }

    /// Creates a ConfigMap with these owners.
    pub async fn owned(&self, name: &str, owners: &[OwnerReference]) -> ConfigMap {
        self.create(&config_map(name, owners)).await
    }

    pub async fn create<T: Resource>(&self, object: &T) -> T {
        self.client.create(object).await.unwrap().object().unwrap()
    }

    pub async fn get(&self, name: &str) -> Result<ConfigMap, ApiError> {
        self.client.get(&Key::new(NAMESPACE, name)).await
    }

    pub async fn delete(&self, name: &str, policy: &str) {
        let options = DeleteOptions {
            propagation_policy: Some(policy.into()),
            ..DeleteOptions::default()
        };
        let key = Key::new(NAMESPACE, name);
        let deleted = self.client.delete_with_options::<ConfigMap>(&key, options);
        deleted.await.unwrap();
    }

    /// Sets the owners of a ConfigMap.
    pub async fn set_owners(&self, name: &str, owners: &[OwnerReference]) {
        let patch = json!({ "metadata": { "ownerReferences": owners } });
        let key = Key::new(NAMESPACE, name);
        self.client
            .patch::<ConfigMap>(&key, "", patch)
            .await
            .unwrap();
    }

    /// Removes the finalizers of a ConfigMap.
    pub async fn release(&self, name: &str) {
        let patch = json!({ "metadata": { "finalizers": null } });
        let key = Key::new(NAMESPACE, name);
        self.client
            .patch::<ConfigMap>(&key, "", patch)
            .await
            .unwrap();
    }

    /// Waits until there is no ConfigMap of this name.
    pub async fn gone(&self, name: &str) {
        self.watched(|all: Vec<Arc<Whole<ConfigMap>>>| {
            let exists = all.iter().any(|one| one.meta.key.name == name);
            (!exists).then_some(())
        })
        .await;
        assert_eq!(self.get(name).await.unwrap_err().reason, Reason::NotFound);
    }

    /// Waits for an object that is as wanted.
    pub async fn seen<T: Resource>(&self, wanted: impl Fn(&T) -> bool) -> T {
        self.watched(|all: Vec<Arc<Whole<T>>>| {
            let mut all = all.iter().map(|view| &view.object);
            all.find(|object| wanted(object)).cloned()
        })
        .await
    }

    /// Waits until `found` returns something for the objects of a kind.
    pub async fn watched<V: View, T>(&self, found: impl Fn(Vec<Arc<V>>) -> Option<T>) -> T {
        let (changed, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        let wake = changed.clone();
        let informer = self.client.informer::<V>();
        let informer = informer.on_event(move |_| wake.notify_one());
        let reader = informer.reader();
        let _stop = stop.clone().drop_guard();
        tokio::spawn(informer.run(stop));
        let seen = async {
            reader.synced().await;
            loop {
                if let Some(found) = found(reader.list()) {
                    return found;
                }
                changed.notified().await;
            }
        };
        timeout(Duration::from_secs(120), seen).await.unwrap()
    }
}

pub fn connect(url: &str) -> Client {
    let settings = client::Settings {
        address: url.to_owned(),
        ..Default::default()
    };
    Client::connect(&settings, NAME).unwrap()
}

/// Runs a collector over a client until the guard is dropped.
pub fn run(client: Client) -> DropGuard {
    let (stop, queue) = (CancellationToken::new(), QueueHandle::default());
    let collector = Collector::new(Recorder::new(client.clone(), NAME, "0"));
    let controller = Controller::new(NAME, collector, client.clone());
    let controller = controller.unelected().queue(&queue);
    let (collector, shutdown) = (controller.reconciler(), stop.clone());
    tokio::spawn(async move {
        tokio::select! {
            ended = controller.run("garbage-collector-controller-0", shutdown) => ended.unwrap(),
            () = collector.follow(&client, &queue) => {}
        }
    });
    stop.drop_guard()
}

pub fn config_map(name: &str, owners: &[OwnerReference]) -> ConfigMap {
    let mut object = ConfigMap::default();
    (object.metadata.namespace, object.metadata.name) = (NAMESPACE.into(), name.into());
    object.metadata.owner_references = owners.to_vec();
    object
}

/// Returns a reference to an owner that blocks its deletion.
pub fn blocking<T: Resource>(owner: &T) -> OwnerReference {
    let meta = owner.meta();
    OwnerReference {
        api_version: T::API_VERSION.into(),
        kind: T::KIND.into(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        block_owner_deletion: Some(true),
        ..Default::default()
    }
}

/// Returns a reference to an owner that does not exist.
pub fn dangling(name: &str) -> OwnerReference {
    let mut owner = config_map(name, &[]);
    owner.metadata.uid = format!("no-object-has-the-uid-{name}");
    blocking(&owner)
}
