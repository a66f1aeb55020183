//! The writes, against a gateway in this process.

use std::sync::Arc;

use serde_json::json;
use setpoint_controller::client::Preconditions;
use setpoint_controller::{Client, Reconciler as _, Recorder, View as _, Whole, client};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::Key;
use setpoint_proto::Reason;
use setpoint_proto::core::{Namespace, Service};
use setpoint_service_lb_controller::{
    Balancers, Balancing, Claim, FINALIZER, World, is_ours, plan,
};

use crate::scene::{balanced, node};

struct Fixture {
    gateway: Client,
    balancers: Balancers,
    _gateway: InProcess,
}

impl Fixture {
    async fn start() -> Self {
        let server = in_process::start().await;
        let settings = client::Settings {
            address: server.url.clone(),
            ..Default::default()
        };
        let gateway = Client::connect(&settings, "service-lb-controller").unwrap();
        let mut namespace = Namespace::default();
        namespace.metadata.name = "default".into();
        let _ = gateway.create(&namespace).await;
        let services = gateway.informer().reader();
        let (nodes, slices) = (gateway.informer().reader(), gateway.informer().reader());
        let settings = Balancing::default();
        Self {
            balancers: Balancers::new(services, nodes, slices, Recorder::silent(), settings),
            gateway,
            _gateway: server,
        }
    }

    fn key() -> Key {
        Key::new("default", "web")
    }

    async fn service(&self) -> Service {
        self.gateway.get(&Self::key()).await.unwrap()
    }

    async fn world(&self) -> World {
        let service = Whole::of(self.service().await);
        let node = serde_json::from_value(node(1)).unwrap();
        let nodes = [Arc::new(setpoint_service_lb_controller::NodeView::of(node))];
        let none = Default::default();
        let ours = is_ours(&service.object) && !service.meta.deleting;
        let claim = ours.then(|| Claim::of(&service, &nodes, &none, &Default::default()));
        World {
            claims: claim.into_iter().collect(),
            service: Arc::new(service),
            reported: None,
        }
    }

    /// Executes plans until one is empty or the Service is gone.
    async fn reconcile(&self) {
        while let Ok(service) = self.gateway.get::<Service>(&Self::key()).await {
            let world = self.world().await;
            let steps = plan(&world).steps;
            for step in &steps {
                let acted = self
                    .balancers
                    .act(&self.gateway, &world, &step.action)
                    .await;
                acted.unwrap();
            }
            if steps.is_empty() {
                assert_eq!(service.metadata.uid, world.service.meta.uid);
                return;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_has_addresses_until_it_is_deleted() {
    let fixture = Fixture::start().await;
    let mut web = balanced("web", 1, &[80]);
    web["metadata"] = json!({"namespace": "default", "name": "web", "finalizers": ["a.io/other"]});
    let web: Service = serde_json::from_value(web).unwrap();
    fixture.gateway.create(&web).await.unwrap();
    fixture.reconcile().await;
    let web = fixture.service().await;
    assert_eq!(web.status.load_balancer.ingress[0].ip, "10.245.0.1");
    assert_eq!(web.metadata.finalizers, ["a.io/other", FINALIZER]);

    let key = Fixture::key();
    let deleted = fixture
        .gateway
        .delete::<Service>(&key, Preconditions::default(), None);
    deleted.await.unwrap();
    fixture.reconcile().await;
    let web = fixture.service().await;
    assert_eq!(web.metadata.finalizers, ["a.io/other"]);
    assert!(web.status.load_balancer.ingress.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_of_another_type_has_no_addresses_and_no_finalizer() {
    let fixture = Fixture::start().await;
    let mut web = balanced("web", 1, &[80]);
    web["metadata"] = json!({"namespace": "default", "name": "web"});
    let web: Service = serde_json::from_value(web).unwrap();
    fixture.gateway.create(&web).await.unwrap();
    fixture.reconcile().await;
    let patch = json!({"spec": {"type": "ClusterIP"}});
    let key = Fixture::key();
    let patched = fixture.gateway.patch::<Service>(&key, "", patch);
    patched.await.unwrap();
    fixture.reconcile().await;
    let web = fixture.service().await;
    assert!(web.metadata.finalizers.is_empty());
    assert!(web.status.load_balancer.ingress.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_was_not_observed_is_not_written() {
    let fixture = Fixture::start().await;
    let mut web = balanced("web", 1, &[80]);
    web["metadata"] = json!({"namespace": "default", "name": "web"});
    let web: Service = serde_json::from_value(web).unwrap();
    fixture.gateway.create(&web).await.unwrap();
    let world = fixture.world().await;
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let key = Fixture::key();
    let patched = fixture.gateway.patch::<Service>(&key, "", labels);
    patched.await.unwrap();
    let action = &plan(&world).steps[0].action;
    let refused = fixture
        .balancers
        .act(&fixture.gateway, &world, action)
        .await;
    assert_eq!(refused.unwrap_err().reason, Reason::Conflict);
}
