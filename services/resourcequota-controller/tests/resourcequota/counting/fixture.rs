//! A gateway with a namespace, and the controller.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::{Client, Controller, QueueHandle, Whole, client};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::Key;
use setpoint_proto::core::{
    ConfigMap, Container, Namespace, Pod, ResourceQuota, ResourceQuotaSpec, ServiceAccount,
};
use setpoint_proto::meta::Quantity;
use setpoint_proto::{ApiError, Resource};
use setpoint_resourcequota_controller::{Counting, controller};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

pub const NAMESPACE: &str = "shop";
const NAME: &str = "resourcequota-controller";

pub type List<'a> = &'a [(&'a str, &'a str)];

pub struct Fixture {
    pub client: Client,
    pub gateway: InProcess,
}

impl Fixture {
    /// Starts a gateway with the namespace [`NAMESPACE`].
    pub async fn start() -> Self {
        let server = in_process::start().await;
        let settings = client::Settings {
            address: server.url.clone(),
            ..Default::default()
        };
        let fixture = Self {
            client: Client::connect(&settings, NAME).unwrap(),
            gateway: server,
        };
        fixture.create_namespace(NAMESPACE).await;
        fixture
    }

    /// Starts a gateway and the controller, which ends with the guard.
    pub async fn running() -> (Self, DropGuard) {
        let fixture = Self::start().await;
        let running = fixture.run();
        (fixture, running)
    }

    /// Runs the controller until the guard is dropped.
    pub fn run(&self) -> DropGuard {
        let (client, stop) = (self.client.clone(), CancellationToken::new());
        let (queue, shutdown) = (QueueHandle::default(), stop.clone());
        let new = |reconciler| {
            let controller = Controller::new(NAME, reconciler, client.clone());
            controller.unelected().queue(&queue)
        };
        let (quotas, definitions) = (client.informer(), client.informer());
        let controller = controller(quotas, definitions, Counting::default(), new);
        let quotas = controller.reconciler();
        tokio::spawn(async move {
            tokio::select! {
                _ = controller.run("resourcequota-controller-0", shutdown) => {}
                () = quotas.follow(&client, &queue) => {}
            }
        });
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

    pub async fn create<T: Resource>(&self, object: &T) -> Result<T, ApiError> {
        self.client.create(object).await?.object()
    }

    pub async fn delete<T: Resource>(&self, name: &str) -> Result<(), ApiError> {
        let key = Key::new(NAMESPACE, name);
        let deleted = self.client.delete::<T>(&key, Default::default(), Some(0));
        deleted.await.map(|_| ())
    }

    pub async fn quota(&self) -> ResourceQuota {
        let key = Key::new(NAMESPACE, "quota");
        self.client.get(&key).await.unwrap()
    }

    /// Waits until this is used of the quota of [`NAMESPACE`].
    pub async fn used(&self, expected: List<'_>) {
        self.used_in(NAMESPACE, expected).await;
    }

    /// Waits until this is used of the quota of a namespace.
    pub async fn used_in(&self, namespace: &str, expected: List<'_>) {
        self.used_of(&Key::new(namespace, "quota"), expected).await;
    }

    /// Waits until this is used of a quota.
    pub async fn used_of(&self, quota: &Key, expected: List<'_>) {
        let expected = list(expected);
        let (changed, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        let told = changed.clone();
        let informer = self.client.informer::<Whole<ResourceQuota>>();
        let informer = informer.on_event(move |_| told.notify_one());
        let reader = informer.reader();
        let _stop = stop.clone().drop_guard();
        tokio::spawn(informer.run(stop));
        let found = || {
            let quota = reader.get(quota);
            quota.map(|quota| quota.object.status.used.clone())
        };
        let seen = async {
            reader.synced().await;
            while found().as_ref() != Some(&expected) {
                changed.notified().await;
            }
        };
        if timeout(Duration::from_secs(60), seen).await.is_err() {
            panic!("{:?} instead of {expected:?}", found());
        }
    }
}

pub fn list(amounts: List<'_>) -> BTreeMap<String, Quantity> {
    let entry = |(name, text): &(&str, &str)| ((*name).to_owned(), Quantity::new(*text));
    amounts.iter().map(entry).collect()
}

pub fn quota(hard: List<'_>) -> ResourceQuota {
    let mut quota = ResourceQuota {
        spec: ResourceQuotaSpec {
            hard: list(hard),
            ..ResourceQuotaSpec::default()
        },
        ..ResourceQuota::default()
    };
    (quota.metadata.namespace, quota.metadata.name) = (NAMESPACE.into(), "quota".into());
    quota
}

pub fn config_map(name: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    (object.metadata.namespace, object.metadata.name) = (NAMESPACE.into(), name.into());
    object
}

pub fn pod(name: &str, requests: List<'_>) -> Pod {
    let mut pod = Pod::default();
    (pod.metadata.namespace, pod.metadata.name) = (NAMESPACE.into(), name.into());
    let mut container = Container {
        name: "main".into(),
        image: "web".into(),
        ..Container::default()
    };
    container.resources.requests = list(requests);
    pod.spec.containers.push(container);
    pod
}
