//! A gateway with one namespace, and the controller.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use setpoint_controller::{Client, Controller, View, Whole, client};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::Key;
use setpoint_namespace_controller::controller;
use setpoint_proto::core::{ConfigMap, Container, Namespace, Pod, ServiceAccount};
use setpoint_proto::{ApiError, Reason, Resource};
use setpoint_store::{Encrypted, Memory};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

pub const NAMESPACE: &str = "shop";
const NAME: &str = "namespace-controller";

pub struct Fixture {
    pub client: Client,
    pub gateway: InProcess,
    pub store: Memory,
    _controller: Option<DropGuard>,
}

impl Fixture {
    /// Starts a gateway with the namespace [`NAMESPACE`].
    pub async fn start() -> Self {
        let store = Memory::default();
        let encrypted = Encrypted::new(Arc::new(store.clone()), Arc::default());
        let server = in_process::start_over(Arc::new(encrypted)).await;
        let settings = client::Settings {
            address: server.url.clone(),
            ..Default::default()
        };
        let fixture = Self {
            client: Client::connect(&settings, NAME).unwrap(),
            gateway: server,
            store,
            _controller: None,
        };
        fixture.create_namespace(NAMESPACE).await;
        fixture
    }

    /// Starts a gateway and the controller.
    pub async fn running() -> Self {
        let mut fixture = Self::start().await;
        fixture._controller = Some(fixture.run());
        fixture
    }

    /// Runs the controller until the guard is dropped.
    pub fn run(&self) -> DropGuard {
        let (client, stop) = (self.client.clone(), CancellationToken::new());
        let (namespaces, pods) = (client.informer(), client.informer());
        let new = |reconciler| Controller::new(NAME, reconciler, client.clone()).unelected();
        let controller = controller(namespaces, pods, new);
        let shutdown = stop.clone();
        tokio::spawn(async move { controller.run("namespace-controller-0", shutdown).await });
        stop.drop_guard()
    }

    /// Creates a namespace with its ServiceAccount.
    pub async fn create_namespace(&self, name: &str) {
        let mut namespace = Namespace::default();
        namespace.metadata.name = name.into();
        self.client.create(&namespace).await.unwrap();
        let mut account = ServiceAccount::default();
        (account.metadata.namespace, account.metadata.name) = (name.into(), "default".into());
        self.client.create(&account).await.unwrap();
    }

    /// Begins the deletion of the namespace.
    pub async fn end(&self) {
        let key = Key::new("", NAMESPACE);
        let deleted = self
            .client
            .delete::<Namespace>(&key, Default::default(), None);
        deleted.await.unwrap();
    }

    pub async fn get<T: Resource>(&self, name: &str) -> Result<T, ApiError> {
        self.client.get(&Key::new(NAMESPACE, name)).await
    }

    pub async fn namespace(&self) -> Result<Namespace, ApiError> {
        self.client.get(&Key::new("", NAMESPACE)).await
    }

    /// Removes the finalizers of an object.
    pub async fn release<T: Resource>(&self, name: &str) {
        let key = Key::new(NAMESPACE, name);
        let off = json!({ "metadata": { "finalizers": null } });
        self.client.patch::<T>(&key, "", off).await.unwrap();
    }

    /// Waits until the namespace is as wanted.
    pub async fn until(&self, wanted: impl Fn(&Namespace) -> bool) -> Namespace {
        self.watched(|all: Vec<Arc<Whole<Namespace>>>| {
            let mut all = all.into_iter().map(|view| view.object.clone());
            all.find(|one| one.metadata.name == NAMESPACE && wanted(one))
        })
        .await
    }

    pub async fn until_gone(&self) {
        self.until_missing(NAMESPACE).await;
        assert_eq!(self.namespace().await.unwrap_err().reason, Reason::NotFound);
    }

    /// Waits until there is no namespace of this name.
    pub async fn until_missing(&self, name: &str) {
        self.watched(|all: Vec<Arc<Whole<Namespace>>>| {
            let mut all = all.iter();
            (!all.any(|view| view.meta.key.name == name)).then_some(())
        })
        .await;
    }

    /// Waits until `found` returns something for the objects of a kind.
    async fn watched<V: View, T>(&self, found: impl Fn(Vec<Arc<V>>) -> Option<T>) -> T {
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
        timeout(Duration::from_secs(60), seen).await.unwrap()
    }
}

pub fn config_map(name: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    (object.metadata.namespace, object.metadata.name) = (NAMESPACE.into(), name.into());
    object
}

pub fn pod(name: &str) -> Pod {
    let mut pod = Pod::default();
    (pod.metadata.namespace, pod.metadata.name) = (NAMESPACE.into(), name.into());
    pod.spec.containers.push(Container {
        name: "main".into(),
        image: "web".into(),
        ..Container::default()
    });
    pod
}
