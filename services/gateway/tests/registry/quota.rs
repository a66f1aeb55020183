//! Tests of quotas and limit ranges.

use std::collections::BTreeMap;

use setpoint_proto::Reason;
use setpoint_proto::core::{
    LimitRange, LimitRangeItem, Node, PersistentVolumeClaim, Pod, ResourceQuota, Service,
    ServicePort,
};
use setpoint_proto::meta::{DeleteOptions, Quantity};
use setpoint_store::contract::objects::config_map;

use crate::background::with_background;
use crate::gateway::{TestGateway, pod};

type List<'a> = &'a [(&'a str, &'a str)];

fn list(amounts: List<'_>) -> BTreeMap<String, Quantity> {
    let entry = |(name, text): &(&str, &str)| ((*name).to_owned(), Quantity::new(*text));
    amounts.iter().map(entry).collect()
}

fn quota(hard: List<'_>) -> ResourceQuota {
    let mut quota = ResourceQuota::default();
    quota.metadata.name = "quota".into();
    quota.spec.hard = list(hard);
    quota
}

fn requesting(name: &str, requests: List<'_>) -> Pod {
    let mut pod = pod(name);
    pod.spec.containers[0].resources.requests = list(requests);
    pod
}

async fn used(gateway: &TestGateway, expected: List<'_>) {
    let expected = list(expected);
    gateway
        .seen(|quota: &ResourceQuota| quota.status.used == expected)
        .await;
}

async fn delete<T: setpoint_proto::Resource>(gateway: &TestGateway, name: &str) {
    gateway
        .delete::<T>(name, DeleteOptions::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_quota_is_charged_by_creates_and_returned_by_deletes() {
    let (gateway, _background) = with_background().await;
    let hard = [("pods", "2"), ("requests.cpu", "1")];
    gateway.create(&quota(&hard)).await.unwrap();
    used(&gateway, &[("pods", "0"), ("requests.cpu", "0")]).await;
    let one = requesting("one", &[("cpu", "600m")]);
    gateway.create(&one).await.unwrap();
    let charged: ResourceQuota = gateway.get("quota").await.unwrap();
    let expected = list(&[("pods", "1"), ("requests.cpu", "600m")]);
    assert_eq!(charged.status.used, expected);
    assert_eq!(charged.status.hard, list(&hard));

    let two = requesting("two", &[("cpu", "500m")]);
    let error = gateway.create(&two).await.unwrap_err();
    assert_eq!(error.reason, Reason::Forbidden);
    assert_eq!(
        error.message,
        "pods \"two\" is forbidden: exceeded quota: quota, requested: requests.cpu=500m, \
        used: requests.cpu=600m, limited: requests.cpu=1"
    );
    let error = gateway.create(&pod("three")).await.unwrap_err();
    assert_eq!(
        error.message,
        "pods \"three\" is forbidden: failed quota: quota: must specify requests.cpu for: web"
    );
    delete::<Pod>(&gateway, "one").await;
    used(&gateway, &[("pods", "0"), ("requests.cpu", "0")]).await;
    gateway.create(&two).await.unwrap();
}

/// A create that fails charges nothing, and a dry run neither.
#[tokio::test]
async fn a_write_that_is_not_made_is_not_charged() {
    let (gateway, _background) = with_background().await;
    gateway
        .create(&quota(&[("count/configmaps", "9")]))
        .await
        .unwrap();
    used(&gateway, &[("count/configmaps", "0")]).await;
    gateway.create(&config_map("a", "1")).await.unwrap();
    let error = gateway.create(&config_map("a", "1")).await.unwrap_err();
    assert_eq!(error.reason, Reason::AlreadyExists);
    let dry = setpoint_gateway::registry::RequestContext::default().dry(true);
    gateway
        .create_as(&dry, &config_map("b", "1"))
        .await
        .unwrap();
    let quota: ResourceQuota = gateway.get("quota").await.unwrap();
    assert_eq!(quota.status.used, list(&[("count/configmaps", "1")]));
}

#[tokio::test]
async fn concurrent_creates_through_two_gateways_do_not_exceed_a_quota() {
    let (first, _background) = with_background().await;
    let second = first.another().await;
    first.create(&quota(&[("configmaps", "5")])).await.unwrap();
    used(&first, &[("configmaps", "0")]).await;
    let creates = (0..10).map(|n| {
        let gateway = if n % 2 == 0 { &first } else { &second };
        async move {
            let created = gateway.create(&config_map(&format!("map-{n}"), "1")).await;
            created.is_ok()
        }
    });
    let created = futures::future::join_all(creates).await;
    assert_eq!(created.into_iter().filter(|created| *created).count(), 5);
    used(&first, &[("configmaps", "5")]).await;
}

#[tokio::test]
async fn a_change_of_type_is_charged_for_the_difference() {
    let (gateway, _background) = with_background().await;
    let hard = [("services", "2"), ("services.nodeports", "1")];
    gateway.create(&quota(&hard)).await.unwrap();
    used(&gateway, &[("services", "0"), ("services.nodeports", "0")]).await;
    let mut web = Service::default();
    web.metadata.name = "web".into();
    web.spec.ports = [80, 81]
        .map(|port| ServicePort {
            name: format!("port-{port}"),
            port,
            ..Default::default()
        })
        .into();
    let mut web = gateway.create(&web).await.unwrap();
    web.spec.r#type = "NodePort".into();
    let error = gateway.replace(&web).await.unwrap_err();
    assert_eq!(
        error.message,
        "services \"web\" is forbidden: exceeded quota: quota, requested: services.nodeports=2, \
        used: services.nodeports=0, limited: services.nodeports=1"
    );
    web.spec.ports.pop();
    gateway.replace(&web).await.unwrap();
    used(&gateway, &[("services", "1"), ("services.nodeports", "1")]).await;
}

#[tokio::test]
async fn a_quota_counts_only_its_scopes_and_pods_that_have_not_ended() {
    let (gateway, _background) = with_background().await;
    let mut best = quota(&[("pods", "5")]);
    best.spec.scopes = vec!["BestEffort".into()];
    gateway.create(&best).await.unwrap();
    used(&gateway, &[("pods", "0")]).await;
    gateway
        .create(&requesting("sized", &[("cpu", "1")]))
        .await
        .unwrap();
    let mut plain = gateway.create(&pod("plain")).await.unwrap();
    used(&gateway, &[("pods", "1")]).await;
    plain.status.phase = "Failed".into();
    gateway.report(&plain).await.unwrap();
    used(&gateway, &[("pods", "0")]).await;
}

#[tokio::test]
async fn a_new_limit_is_counted_and_a_written_status_is_corrected() {
    let (gateway, _background) = with_background().await;
    gateway.create(&pod("web")).await.unwrap();
    let mut quota = gateway.create(&quota(&[("pods", "1")])).await.unwrap();
    used(&gateway, &[("pods", "1")]).await;
    quota.spec.hard = list(&[("count/pods", "7")]);
    gateway.replace(&quota).await.unwrap();
    used(&gateway, &[("count/pods", "1")]).await;
    let mut quota: ResourceQuota = gateway.get("quota").await.unwrap();
    quota.status.hard = list(&[("pods", "9")]);
    gateway.report(&quota).await.unwrap();
    let counted = list(&[("count/pods", "7")]);
    let mut quota = gateway
        .seen(|quota: &ResourceQuota| quota.status.hard == counted)
        .await;
    quota.status.used.clear();
    let cleared = gateway.report(&quota).await.unwrap();
    assert_eq!(cleared.status.used, list(&[]));
    used(&gateway, &[("count/pods", "1")]).await;
}

fn range(item: LimitRangeItem) -> LimitRange {
    let mut range = LimitRange::default();
    range.metadata.name = "range".into();
    range.spec.limits.push(item);
    range
}

/// As in upstream's test `should create a LimitRange with defaults and ensure pod has those defaults applied`.
#[tokio::test]
async fn a_limit_range_sets_defaults_of_containers() {
    let gateway = TestGateway::start().await;
    let item = LimitRangeItem {
        r#type: "Container".into(),
        min: list(&[("cpu", "50m"), ("memory", "100Mi")]),
        max: list(&[("cpu", "500m"), ("memory", "500Mi")]),
        default: list(&[("cpu", "500m"), ("memory", "500Mi")]),
        default_request: list(&[("cpu", "100m"), ("memory", "200Mi")]),
        max_limit_request_ratio: BTreeMap::new(),
    };
    gateway.create(&range(item)).await.unwrap();
    gateway.there::<LimitRange>("range").await;
    let none = gateway.create(&pod("none")).await.unwrap();
    let resources = &none.spec.containers[0].resources;
    let expected = list(&[("cpu", "100m"), ("memory", "200Mi")]);
    assert_eq!(resources.requests, expected);
    let expected = list(&[("cpu", "500m"), ("memory", "500Mi")]);
    assert_eq!(resources.limits, expected);
    assert_eq!(none.status.qos_class, "Burstable");
    assert_eq!(
        none.metadata.annotations["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu, memory request for container web; cpu, memory limit for container web"
    );

    let mut limited = pod("limited");
    limited.spec.containers[0].resources.limits = list(&[("cpu", "300m")]);
    let limited = gateway.create(&limited).await.unwrap();
    let requests = &limited.spec.containers[0].resources.requests;
    assert_eq!(*requests, list(&[("cpu", "300m"), ("memory", "200Mi")]));

    let error = gateway
        .create(&requesting("small", &[("cpu", "10m"), ("memory", "50Mi")]))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::Forbidden);
    assert_eq!(
        error.message,
        "pods \"small\" is forbidden: [minimum cpu usage per Container is 50m, but request is 10m, \
        minimum memory usage per Container is 100Mi, but request is 50Mi]"
    );
    let mut large = pod("large");
    large.spec.containers[0].resources.limits = list(&[("cpu", "600m")]);
    let error = gateway.create(&large).await.unwrap_err();
    assert_eq!(
        error.message,
        "pods \"large\" is forbidden: maximum cpu usage per Container is 500m, but limit is 600m"
    );
}

#[tokio::test]
async fn a_limit_range_bounds_pods_ratios_and_claims() {
    let gateway = TestGateway::start().await;
    let mut range = range(LimitRangeItem {
        r#type: "Pod".into(),
        max: list(&[("cpu", "1")]),
        max_limit_request_ratio: list(&[("cpu", "2")]),
        ..Default::default()
    });
    range.spec.limits.push(LimitRangeItem {
        r#type: "PersistentVolumeClaim".into(),
        min: list(&[("storage", "1Gi")]),
        max: list(&[("storage", "2Gi")]),
        ..Default::default()
    });
    gateway.create(&range).await.unwrap();
    gateway.there::<LimitRange>("range").await;
    let mut web = pod("web");
    web.spec.containers[0].resources.limits = list(&[("cpu", "600m")]);
    web.spec.containers[0].resources.requests = list(&[("cpu", "250m")]);
    web.spec.containers.push(web.spec.containers[0].clone());
    web.spec.containers[1].name = "other".into();
    let error = gateway.create(&web).await.unwrap_err();
    assert_eq!(
        error.message,
        "pods \"web\" is forbidden: [maximum cpu usage per Pod is 1, but limit is 1200m, \
        cpu max limit to request ratio per Pod is 2, but provided ratio is 2.400000]"
    );
    let mut claim = PersistentVolumeClaim::default();
    claim.metadata.name = "data".into();
    claim.spec.access_modes = vec!["ReadWriteOnce".into()];
    claim.spec.resources.requests = list(&[("storage", "500Mi")]);
    let error = gateway.create(&claim).await.unwrap_err();
    assert_eq!(
        error.message,
        "persistentvolumeclaims \"data\" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, \
        but request is 500Mi"
    );
    claim.spec.resources.requests = list(&[("storage", "3Gi")]);
    let error = gateway.create(&claim).await.unwrap_err();
    assert!(
        error.message.ends_with(
            "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"
        ),
        "{error}"
    );
    claim.spec.resources.requests = list(&[("storage", "2Gi")]);
    gateway.create(&claim).await.unwrap();
}

/// Quotas, limit ranges and the node bound a resize as they bound a new Pod.
#[tokio::test]
async fn a_resize_is_bounded_by_limit_ranges_and_by_the_node() {
    let gateway = TestGateway::start().await;
    let mut node = Node::default();
    node.metadata.name = "node-1".into();
    node.status.allocatable = list(&[("cpu", "2"), ("memory", "1Gi")]);
    node.metadata = gateway.create(&node).await.unwrap().metadata;
    gateway.report(&node).await.unwrap();
    gateway
        .seen(|node: &Node| !node.status.allocatable.is_empty())
        .await;
    let mut web = requesting("web", &[("cpu", "1"), ("memory", "1Gi")]);
    web.spec.node_name = "node-1".into();
    let web = gateway.create(&web).await.unwrap();
    let resized = |cpu: &str| {
        let mut web = web.clone();
        web.metadata.resource_version.clear();
        let requests = &mut web.spec.containers[0].resources.requests;
        requests.insert("cpu".into(), Quantity::new(cpu));
        web
    };
    let error = gateway
        .update_part("resize", &resized("3"))
        .await
        .unwrap_err();
    assert_eq!(
        error.message,
        "pods \"web\" is forbidden: node didn't have enough allocatable resources: \
        cpu, requested: 3000, allocatable: 2000"
    );
    let causes = error.details.unwrap().causes;
    assert_eq!(causes[0].reason, "NodeCapacity");
    gateway.update_part("resize", &resized("2")).await.unwrap();
    let bounds = range(LimitRangeItem {
        r#type: "Container".into(),
        max: list(&[("cpu", "2")]),
        min: list(&[("cpu", "500m")]),
        ..Default::default()
    });
    gateway.create(&bounds).await.unwrap();
    gateway.there::<LimitRange>("range").await;
    let error = gateway
        .update_part("resize", &resized("100m"))
        .await
        .unwrap_err();
    let bound = "minimum cpu usage per Container is 500m, but request is 100m";
    assert!(error.message.contains(bound), "{error}");
}
