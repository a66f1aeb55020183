//! Writes of an object and of its subresources: each verb passes the same checks.

use serde_json::{Value, json};
use setpoint_codec::patch as patches;
use setpoint_gateway::registry::{AtLeast, RequestContext};
use setpoint_gateway::verbs::Patch;
use setpoint_proto::apps::Deployment;
use setpoint_proto::core::{LimitRange, LimitRangeItem, Node, Pod, ResourceQuota};
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_proto::{ApiError, Reason, Resource};
use setpoint_store::contract::objects::NAMESPACE;

use crate::registry::gateway::{TestGateway, deployment, pod, target};
use crate::registry::quota::{limit, list, quota, used};

/// The ways to write an object.
const VERBS: [Option<Type>; 5] = [
    None,
    Some(Type::Json),
    Some(Type::Merge),
    Some(Type::Strategic),
    Some(Type::Apply),
];

impl TestGateway {
    /// Changes a part of the object `web` by a strategic merge patch, in another form if `verb` is another one; `None`
    /// is an update.
    async fn write<T: Resource>(
        &self,
        verb: Option<Type>,
        part: &str,
        change: &Value,
        dry_run: bool,
    ) -> Result<(), ApiError> {
        let context = RequestContext {
            dry_run,
            ..Default::default()
        };
        let target = target::<T>("web", part);
        let found = self.registry.get(&context, &target, AtLeast::Newest).await;
        let found = found.unwrap().into_object().unwrap();
        let kind = found.kind();
        let stored = serde_json::from_slice(&found.to_json()).unwrap();
        let changed = patches::strategic(kind, stored, change.clone()).unwrap();
        let (field, _) = change.as_object().unwrap().iter().next().unwrap();
        let value = &changed[field];
        let Some(r#type) = verb else {
            let object = kind.from_json(changed.to_string().as_bytes()).unwrap();
            return self
                .registry
                .update(&context, &target, object)
                .await
                .map(drop);
        };
        let mut applied = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind,
            "metadata": {"name": "web", "namespace": NAMESPACE},
        });
        applied[field] = change[field].clone();
        let patch = Patch {
            body: match r#type {
                Type::Json => {
                    json!([{"op": "replace", "path": format!("/{field}"), "value": value}])
                }
                Type::Merge => json!({ field: value }),
                Type::Apply => applied,
                _ => change.clone(),
            },
            r#type,
            bytes: 0,
            force: true,
            check: |_, _| Ok(Vec::new()),
        };
        self.registry
            .patch(&context, &target, &patch)
            .await
            .map(drop)
    }

    /// Checks that each verb, dry or not, refuses a change for the same reason, and that nothing is stored or reserved.
    async fn refuses<T: Resource>(&self, part: &str, change: &Value, expected: &str) {
        let before = self.revisions::<T>().await;
        let mut messages = Vec::new();
        for verb in VERBS {
            for dry_run in [true, false] {
                let refused = self.write::<T>(verb, part, change, dry_run).await;
                let error = refused.expect_err(expected);
                assert!(error.message.contains(expected), "{verb:?} {part}: {error}");
                messages.push(error.message);
            }
        }
        messages.dedup();
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert_eq!(self.revisions::<T>().await, before, "{change}");
    }

    /// Returns the revisions of the object and of the quota.
    async fn revisions<T: Resource>(&self) -> [String; 2] {
        let of = |meta: &setpoint_proto::meta::ObjectMeta| meta.resource_version.clone();
        let object: T = self.get("web").await.unwrap();
        let quota: ResourceQuota = self.get("quota").await.unwrap();
        [of(object.meta()), of(&quota.metadata)]
    }
}

/// Starts with a Pod of one CPU on a node of four, a quota of two, and at least half a CPU for each container.
async fn bounded() -> TestGateway {
    let gateway = TestGateway::start().await;
    let mut node = Node::default();
    node.metadata.name = "node-1".into();
    node.status.allocatable = list(&[("cpu", "4"), ("memory", "1Gi")]);
    node.metadata = gateway.create(&node).await.unwrap().metadata;
    gateway.report(&node).await.unwrap();
    gateway
        .seen(|node: &Node| !node.status.allocatable.is_empty())
        .await;
    limit(&gateway, quota(&[("requests.cpu", "2")])).await;
    let mut range = LimitRange::default();
    range.metadata.name = "range".into();
    range.spec.limits.push(LimitRangeItem {
        r#type: "Container".into(),
        min: list(&[("cpu", "500m")]),
        ..Default::default()
    });
    gateway.create(&range).await.unwrap();
    gateway.there::<LimitRange>("range").await;
    let mut web = pod("web");
    web.spec.node_name = "node-1".into();
    web.spec.containers[0].resources.requests = list(&[("cpu", "1"), ("memory", "1Gi")]);
    gateway.create(&web).await.unwrap();
    gateway
}

/// The message of an update of a Pod. Checks T5: it ends with the fields that would change.
const NAMES_ITS_FIELDS: &str = "spec: Forbidden: pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\
    \nspec.containers[web].command: <unset> -> [\"sh\"]";

fn resources(name: &str, amount: &str) -> Value {
    let resources = json!({"requests": {name: amount}});
    json!({"spec": {"containers": [{"name": "web", "resources": resources}]}})
}

/// Checks E1: limit ranges, quotas, the capacity of the node and validation bound each verb alike.
#[tokio::test]
async fn each_verb_on_each_subresource_passes_the_same_checks() {
    let gateway = bounded().await;
    gateway.create(&deployment("web")).await.unwrap();
    for (part, change, expected) in [
        (
            "resize",
            resources("cpu", "100m"),
            "minimum cpu usage per Container is 500m, but request is 100m",
        ),
        (
            "resize",
            resources("cpu", "2500m"),
            "exceeded quota: quota, requested: requests.cpu=1500m, used: requests.cpu=1, limited: requests.cpu=2",
        ),
        (
            "resize",
            resources("memory", "2Gi"),
            "node didn't have enough allocatable resources: memory, requested: 2147483648, allocatable: 1073741824",
        ),
        (
            "resize",
            resources("cpu", "-1"),
            "must be greater than or equal to 0",
        ),
        (
            "ephemeralcontainers",
            json!({"spec": {"ephemeralContainers": [{"name": "debug"}]}}),
            "spec.ephemeralContainers[0].image: Required value",
        ),
        (
            "",
            json!({"spec": {"containers": [{"name": "web", "command": ["sh"]}]}}),
            NAMES_ITS_FIELDS,
        ),
        (
            "status",
            json!({"status": {"podIPs": [{"ip": "none"}]}}),
            "status.podIPs[0]",
        ),
    ] {
        gateway.refuses::<Pod>(part, &change, expected).await;
    }
    for (part, change, expected) in [
        (
            "scale",
            json!({"spec": {"replicas": -1}}),
            "spec.replicas: Invalid value: -1",
        ),
        (
            "status",
            json!({"status": {"replicas": -1}}),
            "status.replicas: Invalid value: -1",
        ),
    ] {
        gateway.refuses::<Deployment>(part, &change, expected).await;
    }
}

/// Checks E1: a resize is charged by each verb, and not by a dry run.
#[tokio::test]
async fn each_verb_charges_a_resize_unless_it_is_a_dry_run() {
    let gateway = bounded().await;
    for (round, verb) in VERBS.into_iter().enumerate() {
        let amount = format!("{}m", 1100 + 100 * round);
        let change = resources("cpu", &amount);
        let before = gateway.revisions::<Pod>().await;
        gateway
            .write::<Pod>(verb, "resize", &change, true)
            .await
            .unwrap();
        assert_eq!(gateway.revisions::<Pod>().await, before, "{verb:?}");
        gateway
            .write::<Pod>(verb, "resize", &change, false)
            .await
            .unwrap();
        used(&gateway, &[("requests.cpu", &amount)]).await;
    }
}

/// A subresource that is a request, and not a part of the object, cannot be updated or patched.
#[tokio::test]
async fn requests_cannot_be_updated_or_patched() {
    let gateway = bounded().await;
    for part in ["binding", "eviction"] {
        for r#type in VERBS.into_iter().flatten() {
            let patch = Patch {
                r#type,
                body: json!({}),
                bytes: 0,
                force: false,
                check: |_, _| Ok(Vec::new()),
            };
            let target = target::<Pod>("web", part);
            let context = RequestContext::of_server();
            let refused = gateway.registry.patch(&context, &target, &patch).await;
            assert_eq!(refused.unwrap_err().reason, Reason::MethodNotAllowed);
        }
        let error = gateway.update_part(part, &pod("web")).await.unwrap_err();
        assert_eq!(error.reason, Reason::MethodNotAllowed);
    }
}

#[tokio::test]
async fn ephemeral_containers_are_added_and_stay() {
    let gateway = TestGateway::start().await;
    let mut web = gateway.create(&pod("web")).await.unwrap();
    assert_eq!(web.metadata.generation, 1);
    let debug = json!([{"name": "debug", "image": "busybox"}]);
    web.spec.ephemeral_containers = serde_json::from_value(debug).unwrap();
    web.spec.containers[0].image = "other".into();
    web.metadata.labels = [("a".to_owned(), "b".to_owned())].into();
    let web = gateway
        .update_part("ephemeralcontainers", &web)
        .await
        .unwrap();
    assert_eq!(web.metadata.generation, 2);
    assert_eq!(web.spec.containers[0].image, "nginx:1.25");
    assert!(web.metadata.labels.is_empty());
    let common = &web.spec.ephemeral_containers[0].ephemeral_container_common;
    assert_eq!(common.image_pull_policy, "Always");
    let mut changed = web.clone();
    changed.spec.ephemeral_containers[0]
        .ephemeral_container_common
        .image = "other".into();
    let error = gateway
        .update_part("ephemeralcontainers", &changed)
        .await
        .unwrap_err();
    assert!(error.message.contains("may not be changed"), "{error}");
    changed.spec.ephemeral_containers.clear();
    let error = gateway
        .update_part("ephemeralcontainers", &changed)
        .await
        .unwrap_err();
    assert!(error.message.contains("may not be removed"), "{error}");
    // An update of the whole Pod cannot add any.
    let whole = json!({"spec": {"ephemeralContainers": [{"name": "two", "image": "busybox"}]}});
    let whole = gateway.patch::<Pod>("web", Type::Strategic, whole).await;
    assert!(
        whole
            .unwrap_err()
            .message
            .contains("pod updates may not change fields")
    );
}

#[tokio::test]
async fn a_pod_that_runs_is_resized_only_if_its_node_can_do_that() {
    let gateway = TestGateway::start().await;
    let mut web = pod("web");
    let resources = json!({"requests": {"cpu": "1"}});
    web.spec.containers[0].resources = serde_json::from_value(resources).unwrap();
    let mut web = gateway.create(&web).await.unwrap();
    let status = json!([{"name": "web", "image": "a", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}}]);
    web.status.container_statuses = serde_json::from_value(status).unwrap();
    let mut web = gateway.report(&web).await.unwrap();
    let larger = json!({"requests": {"cpu": "2"}});
    web.spec.containers[0].resources = serde_json::from_value(larger).unwrap();
    let error = gateway.update_part("resize", &web).await.unwrap_err();
    let text = "Pod running on node without support for resize";
    assert!(error.message.contains(text), "{error}");
    web.status.container_statuses[0].resources = Some(Default::default());
    gateway.report(&web).await.unwrap();
    web.metadata.resource_version.clear();
    let web = gateway.update_part("resize", &web).await.unwrap();
    assert_eq!(web.metadata.generation, 2);
    assert_eq!(web.spec.containers[0].resources.requests["cpu"].string, "2");
}
