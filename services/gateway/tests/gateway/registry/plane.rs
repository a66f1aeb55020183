//! Tests of the accounts of Pods, and of the Service `kubernetes`, which gateways keep.

use std::sync::Arc;
use std::time::Duration;

use setpoint_gateway::ServerInfo;
use setpoint_gateway::registry::{Registry, RequestContext, Target};
use setpoint_proto::Reason;
use setpoint_proto::core::{Endpoints, LocalObjectReference, Namespace, Service, ServiceAccount};
use setpoint_proto::discovery::EndpointSlice;
use setpoint_proto::meta::DeleteOptions;
use setpoint_store::cache::{Cache, Settings};
use setpoint_store::contract::FaultyStore;
use setpoint_store::contract::objects::kind;
use setpoint_store::{Memory, Store};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::registry::background::{with_background, with_background_over};
use crate::registry::gateway::{TestGateway, pod};

/// Checks K18.
#[tokio::test]
async fn a_pod_gets_its_account_pull_secrets_and_tolerations() {
    let gateway = TestGateway::start().await;
    let web = gateway.create(&pod("web")).await.unwrap();
    assert_eq!(web.spec.service_account_name, "default");
    assert_eq!(web.spec.service_account, "default");
    let tolerations = web.spec.tolerations.iter();
    let tolerations: Vec<_> = tolerations
        .map(|one| {
            (
                one.key.as_str(),
                one.effect.as_str(),
                one.toleration_seconds,
            )
        })
        .collect();
    assert_eq!(
        tolerations,
        [
            ("node.kubernetes.io/not-ready", "NoExecute", Some(300)),
            ("node.kubernetes.io/unreachable", "NoExecute", Some(300)),
        ]
    );

    let mut robot = ServiceAccount::default();
    robot.metadata.name = "robot".into();
    robot.image_pull_secrets.push(LocalObjectReference {
        name: "registry".into(),
    });
    gateway.create(&robot).await.unwrap();
    let mut other = pod("other");
    other.spec.service_account = "robot".into();
    let other = gateway.create(&other).await.unwrap();
    assert_eq!(other.spec.service_account_name, "robot");
    assert_eq!(other.spec.image_pull_secrets[0].name, "registry");
}

#[tokio::test]
async fn a_pod_gets_a_volume_with_the_token_of_its_account() {
    let gateway = TestGateway::start().await;
    let web = gateway.create(&pod("web")).await.unwrap();
    let volume = &web.spec.volumes[0];
    assert!(volume.name.starts_with("kube-api-access-"), "{volume:?}");
    let mount = &web.spec.containers[0].volume_mounts[0];
    assert_eq!(mount.name, volume.name);
    assert!(mount.read_only);

    let mut robot = ServiceAccount::default();
    robot.metadata.name = "robot".into();
    robot.automount_service_account_token = Some(false);
    gateway.create(&robot).await.unwrap();
    let mut without = pod("without");
    without.spec.service_account_name = "robot".into();
    let without = gateway.create(&without).await.unwrap();
    assert!(without.spec.volumes.is_empty());
    assert!(without.spec.containers[0].volume_mounts.is_empty());
}

/// Checks K18: the account appears soon, and is the same as if it were there.
#[tokio::test]
async fn a_pod_is_admitted_before_the_default_account_of_its_namespace_exists() {
    let gateway = TestGateway::start().await;
    gateway
        .delete::<ServiceAccount>("default", DeleteOptions::default())
        .await
        .unwrap();
    let web = gateway.create(&pod("web")).await.unwrap();
    assert_eq!(web.spec.service_account_name, "default");
    assert_eq!(web.spec.volumes.len(), 1);
    let error = gateway.get::<ServiceAccount>("default").await.unwrap_err();
    assert_eq!(error.reason, Reason::NotFound);
}

/// The manifest of the Pod has no tolerations.
#[tokio::test]
async fn a_pod_can_be_replaced_by_its_manifest() {
    let gateway = TestGateway::start().await;
    let mut web = gateway.create(&pod("web")).await.unwrap();
    web.spec.tolerations.clear();
    web.spec.containers[0].image = "nginx:1.26".into();
    let web = gateway.replace(&web).await.unwrap();
    assert_eq!(web.spec.tolerations.len(), 2);
    assert_eq!(web.spec.containers[0].image, "nginx:1.26");
}

#[tokio::test]
async fn a_mirror_pod_has_no_account() {
    let gateway = TestGateway::start().await;
    let mut mirror = pod("web");
    let annotations = &mut mirror.metadata.annotations;
    annotations.insert("kubernetes.io/config.mirror".into(), "a".into());
    mirror.spec.node_name = "node".into();
    mirror.spec.service_account_name = "default".into();
    let error = gateway.create(&mirror).await.unwrap_err();
    assert_eq!(error.reason, Reason::Forbidden);
    assert_eq!(
        error.message,
        r#"pods "web" is forbidden: a mirror pod may not reference service accounts"#
    );
    mirror.spec.service_account_name.clear();
    let created = gateway.create(&mirror).await.unwrap();
    assert_eq!(created.spec.service_account_name, "");
}

#[tokio::test]
async fn the_service_kubernetes_is_restored() {
    let (gateway, _background) = with_background().await;
    let is_it = |service: &Service| service.metadata.name == "kubernetes";
    let service = gateway.seen(is_it).await;
    assert_eq!(service.metadata.namespace, "default");
    assert_eq!(service.spec.cluster_ip, "10.96.0.1");
    let port = &service.spec.ports[0];
    assert_eq!((port.name.as_str(), port.port), ("https", 443));
    assert_eq!(port.target_port.int_val, 6443);
    // A gateway that only this host can reach is no endpoint.
    let endpoints = gateway
        .seen(|endpoints: &Endpoints| endpoints.metadata.name == "kubernetes")
        .await;
    assert_eq!(endpoints.subsets, []);
    let slice = gateway
        .seen(|slice: &EndpointSlice| slice.metadata.name == "kubernetes")
        .await;
    assert_eq!(
        slice.metadata.labels["kubernetes.io/service-name"],
        "kubernetes"
    );
    assert_eq!(slice.endpoints, []);

    let target = Target::new(kind::<Service>(), "default", "kubernetes", "").unwrap();
    gateway
        .registry
        .delete(
            &RequestContext::of_server(),
            &target,
            &DeleteOptions::default(),
        )
        .await
        .unwrap();
    let uid = service.metadata.uid;
    gateway
        .seen(|service: &Service| is_it(service) && service.metadata.uid != uid)
        .await;
}

/// A gateway that others can reach, with its background tasks.
async fn reachable(store: Arc<dyn Store>) -> (TestGateway, CancellationToken, JoinHandle<()>) {
    let store = FaultyStore::new(store);
    let cache = Cache::start(store.clone(), Settings::default());
    cache.synced().await;
    let server = ServerInfo {
        instance: "gateway-1".into(),
        port: 6444,
        address: "10.1.2.3".parse().ok(),
    };
    let registry = Registry::new(store.clone(), cache).with_server(server);
    let registry = Arc::new(registry);
    let stop = CancellationToken::new();
    let day = Duration::from_secs(24 * 3600);
    let background = registry
        .clone()
        .run_background(day, stop.clone(), |_| |_| ());
    let background = tokio::spawn(background);
    (TestGateway { store, registry }, stop, background)
}

#[tokio::test]
async fn a_gateway_that_others_reach_is_an_endpoint_until_it_stops() {
    let store = Arc::new(Memory::default());
    let (first, stop, background) = reachable(store.clone()).await;
    let addresses = |endpoints: &Endpoints| -> Vec<_> {
        let subsets = endpoints.subsets.iter();
        let addresses =
            subsets.flat_map(|subset| subset.addresses.iter().map(move |a| (a, subset)));
        addresses
            .map(|(address, subset)| (address.ip.clone(), subset.ports[0].port))
            .collect()
    };
    first
        .seen(|endpoints: &Endpoints| addresses(endpoints) == [("10.1.2.3".to_owned(), 6444)])
        .await;
    let slice = first
        .seen(|slice: &EndpointSlice| !slice.endpoints.is_empty())
        .await;
    assert_eq!(slice.endpoints[0].addresses, ["10.1.2.3"]);
    assert_eq!(slice.ports[0].port, Some(6444));
    let service = first
        .seen(|service: &Service| service.metadata.name == "kubernetes")
        .await;
    assert_eq!(service.spec.ports[0].target_port.int_val, 6444);

    let (_second, _background) = with_background_over(store).await;
    stop.cancel();
    background.await.unwrap();
    first
        .seen(|endpoints: &Endpoints| {
            endpoints.metadata.name == "kubernetes" && addresses(endpoints).is_empty()
        })
        .await;
}

/// Checks K9.
#[tokio::test]
async fn a_namespace_is_gone_when_the_last_finalizer_of_its_spec_is_removed() {
    let gateway = TestGateway::start().await;
    let mut held = Namespace::default();
    held.metadata.name = "held".into();
    held.spec.finalizers.push("example.com/a".into());
    let held = gateway.create(&held).await.unwrap();
    assert_eq!(held.spec.finalizers, ["example.com/a", "kubernetes"]);
    gateway
        .delete::<Namespace>("held", DeleteOptions::default())
        .await
        .unwrap();
    let mut ending: Namespace = gateway.get("held").await.unwrap();
    ending.spec.finalizers.retain(|held| held != "kubernetes");
    let ending = gateway.update_part("finalize", &ending).await.unwrap();
    assert_eq!(ending.spec.finalizers, ["example.com/a"]);
    assert_eq!(ending.status.phase, "Terminating");
    let mut released = ending;
    released.spec.finalizers.clear();
    gateway.update_part("finalize", &released).await.unwrap();
    let gone = gateway.get::<Namespace>("held").await.unwrap_err();
    assert_eq!(gone.reason, Reason::NotFound);
}
