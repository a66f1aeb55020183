//! Tests of the charges of quotas, and of limit ranges.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use setpoint_gateway::registry::{Filter, RequestContext, Start, WatchSpec};
use setpoint_proto::Reason;
use setpoint_proto::core::{
    LimitRange, LimitRangeItem, Node, PersistentVolumeClaim, Pod, ResourceQuota, ScopeSelector,
    ScopedResourceSelectorRequirement, Service, ServicePort,
};
use setpoint_proto::meta::Quantity;
use setpoint_store::contract::objects::{config_map, kind};

use crate::registry::gateway::{TestGateway, pod};

type List<'a> = &'a [(&'a str, &'a str)];

pub fn list(amounts: List<'_>) -> BTreeMap<String, Quantity> {
    let entry = |(name, text): &(&str, &str)| ((*name).to_owned(), Quantity::new(*text));
    amounts.iter().map(entry).collect()
}

pub fn quota(hard: List<'_>) -> ResourceQuota {
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

/// Creates a quota of which nothing is used, as its controller says.
pub async fn limit(gateway: &TestGateway, quota: ResourceQuota) {
    let mut quota = gateway.create(&quota).await.unwrap();
    let names = quota.spec.hard.keys();
    let nothing = names.map(|name| (name.clone(), Quantity::new("0")));
    quota.status.used = nothing.collect();
    quota.status.hard.clone_from(&quota.spec.hard);
    gateway.report(&quota).await.unwrap();
    until_limited(gateway).await;
}

/// Waits until the cache has the limits.
async fn until_limited(gateway: &TestGateway) {
    gateway
        .seen(|quota: &ResourceQuota| !quota.status.hard.is_empty())
        .await;
}

pub async fn used(gateway: &TestGateway, expected: List<'_>) {
    let quota: ResourceQuota = gateway.get("quota").await.unwrap();
    assert_eq!(quota.status.used, list(expected));
}

#[tokio::test]
async fn a_quota_is_charged_by_creates() {
    let gateway = TestGateway::start().await;
    let hard = [("pods", "2"), ("requests.cpu", "1")];
    let uncounted = gateway.create(&quota(&hard)).await.unwrap();
    let one = requesting("one", &[("cpu", "600m")]);
    // Upstream, too, charges nothing for limits that the controller has not taken over.
    gateway.create(&one).await.unwrap();
    used(&gateway, &[]).await;
    let mut counted = uncounted;
    counted.status.hard.clone_from(&counted.spec.hard);
    let mut counted = gateway.report(&counted).await.unwrap();
    until_limited(&gateway).await;
    let two = requesting("two", &[("cpu", "500m")]);
    let error = gateway.create(&two).await.unwrap_err();
    assert_eq!(
        error.message,
        "pods \"two\" is forbidden: status unknown for quota: quota, resources: pods,requests.cpu"
    );
    counted.status.used = list(&[("pods", "0"), ("requests.cpu", "600m")]);
    gateway.report(&counted).await.unwrap();

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
    let two = requesting("two", &[("cpu", "400m")]);
    gateway.create(&two).await.unwrap();
    used(&gateway, &[("pods", "1"), ("requests.cpu", "1")]).await;
    let charged: ResourceQuota = gateway.get("quota").await.unwrap();
    assert_eq!(charged.status.hard, list(&hard));
}

/// A create that fails charges nothing, and a dry run neither.
#[tokio::test]
async fn a_write_that_is_not_made_is_not_charged() {
    let gateway = TestGateway::start().await;
    limit(&gateway, quota(&[("count/configmaps", "9")])).await;
    gateway.create(&config_map("a", "1")).await.unwrap();
    let error = gateway.create(&config_map("a", "1")).await.unwrap_err();
    assert_eq!(error.reason, Reason::AlreadyExists);
    let dry = setpoint_gateway::registry::RequestContext::of_server().dry(true);
    gateway
        .create_as(&dry, &config_map("b", "1"))
        .await
        .unwrap();
    used(&gateway, &[("count/configmaps", "1")]).await;
}

#[tokio::test]
async fn concurrent_creates_through_two_gateways_do_not_exceed_a_quota() {
    let first = TestGateway::start().await;
    let second = first.another().await;
    limit(&first, quota(&[("configmaps", "5")])).await;
    until_limited(&second).await;
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
    let gateway = TestGateway::start().await;
    let hard = [("services", "2"), ("services.nodeports", "1")];
    limit(&gateway, quota(&hard)).await;
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
async fn a_pod_that_gets_a_deadline_is_charged_to_the_quota_of_its_new_scope() {
    let gateway = TestGateway::start().await;
    let mut ending = quota(&[("pods", "1")]);
    ending.spec.scopes = vec!["Terminating".into()];
    limit(&gateway, ending).await;
    let one = gateway.create(&pod("one")).await.unwrap();
    let two = gateway.create(&pod("two")).await.unwrap();
    used(&gateway, &[("pods", "0")]).await;
    let with_deadline = |mut pod: Pod| {
        pod.spec.active_deadline_seconds = Some(60);
        pod
    };
    gateway.replace(&with_deadline(one)).await.unwrap();
    used(&gateway, &[("pods", "1")]).await;
    let error = gateway.replace(&with_deadline(two)).await.unwrap_err();
    assert_eq!(
        error.message,
        "pods \"two\" is forbidden: exceeded quota: quota, requested: pods=1, used: pods=1, limited: pods=1"
    );
}

#[tokio::test]
async fn a_claim_whose_status_names_another_class_is_charged_to_the_quota_of_that_class() {
    let gateway = TestGateway::start().await;
    let mut gold = quota(&[("persistentvolumeclaims", "1")]);
    gold.spec.scope_selector = Some(ScopeSelector {
        match_expressions: vec![ScopedResourceSelectorRequirement {
            scope_name: "VolumeAttributesClass".into(),
            operator: "In".into(),
            values: vec!["gold".into()],
        }],
    });
    limit(&gateway, gold).await;
    let claim = |name: &str| {
        let mut claim = PersistentVolumeClaim::default();
        claim.metadata.name = name.into();
        claim.spec.access_modes = vec!["ReadWriteOnce".into()];
        claim.spec.resources.requests = list(&[("storage", "1Gi")]);
        claim
    };
    let having_gold = |mut claim: PersistentVolumeClaim| {
        claim.status.current_volume_attributes_class_name = Some("gold".into());
        claim
    };
    let one = gateway.create(&claim("one")).await.unwrap();
    let two = gateway.create(&claim("two")).await.unwrap();
    used(&gateway, &[("persistentvolumeclaims", "0")]).await;
    gateway.report(&having_gold(one)).await.unwrap();
    used(&gateway, &[("persistentvolumeclaims", "1")]).await;
    let error = gateway.report(&having_gold(two)).await.unwrap_err();
    assert_eq!(
        error.message,
        "persistentvolumeclaims \"two\" is forbidden: exceeded quota: quota, requested: persistentvolumeclaims=1, \
        used: persistentvolumeclaims=1, limited: persistentvolumeclaims=1"
    );
}

#[tokio::test]
async fn a_resize_is_charged_for_the_difference() {
    let gateway = TestGateway::start().await;
    limit(&gateway, quota(&[("pods", "1"), ("requests.cpu", "1")])).await;
    let web = requesting("web", &[("cpu", "400m")]);
    let web = gateway.create(&web).await.unwrap();
    let resized = |cpu: &str| {
        let mut web = web.clone();
        web.metadata.resource_version.clear();
        web.spec.containers[0].resources.requests = list(&[("cpu", cpu)]);
        web
    };
    let error = gateway
        .update_part("resize", &resized("1100m"))
        .await
        .unwrap_err();
    assert_eq!(
        error.message,
        "pods \"web\" is forbidden: exceeded quota: quota, requested: requests.cpu=700m, \
        used: requests.cpu=400m, limited: requests.cpu=1"
    );
    gateway
        .update_part("resize", &resized("900m"))
        .await
        .unwrap();
    used(&gateway, &[("pods", "1"), ("requests.cpu", "900m")]).await;
    // What a smaller Pod leaves is returned by the controller.
    gateway
        .update_part("resize", &resized("100m"))
        .await
        .unwrap();
    used(&gateway, &[("pods", "1"), ("requests.cpu", "900m")]).await;
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

/// Checks DG12: one create changes two quotas, and a stream ends between their events.
#[tokio::test]
async fn a_watch_that_resumes_after_a_charge_of_two_quotas_gets_both() {
    let gateway = TestGateway::start().await;
    for name in ["q1", "q2"] {
        let mut one = quota(&[("configmaps", "5")]);
        one.metadata.name = name.into();
        limit(&gateway, one).await;
    }
    gateway
        .seen(|quota: &ResourceQuota| quota.metadata.name == "q2" && !quota.status.used.is_empty())
        .await;
    let after = async |start| {
        let spec = WatchSpec {
            filter: Filter::all(kind::<ResourceQuota>(), ""),
            start,
            bookmarks: false,
        };
        let context = RequestContext::of_server();
        gateway.registry.watch(&context, spec).await.unwrap()
    };
    let mut events = after(Start::Now).await;
    gateway.create(&config_map("a", "1")).await.unwrap();
    let mut next = async || events.next().await.unwrap().unwrap().object;
    let (one, two) = (next().await, next().await);
    assert_eq!(one.revision, two.revision);
    assert_ne!(one.key, two.key);
    let mut resumed = after(Start::After(one.revision)).await;
    let again = resumed.next().await.unwrap().unwrap().object;
    assert_eq!((&again.key, again.revision), (&two.key, two.revision));
}
