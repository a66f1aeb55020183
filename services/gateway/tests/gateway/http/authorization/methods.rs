//! The permissions of gRPC methods that are about more than one object, and what explanations leave out.

use serde_json::{Value, json};
use setpoint_gateway::in_process::InProcess;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::setpoint::explain_client::ExplainClient;
use setpoint_proto::setpoint::metadata_client::MetadataClient;
use setpoint_proto::setpoint::metrics_client::MetricsClient;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{
    CountMetadataRequest, CreateRequest, CustomMetricRequest, ExternalMetricRequest,
    GetMetadataRequest, HistoryRequest, ListMetadataRequest, ObjectRef, RemoveMetadataRequest,
    WatchMetadataRequest, WhyRequest, WhyResponse,
};
use setpoint_proto::{Any, ApiError, Reason, Resource};
use tonic::transport::Channel;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

use super::super::api::{Api, CONFIGMAPS, DEPLOYMENTS};
use super::matrix::of_user;
use super::rule;

async fn connect(api: &Api) -> (Channel, InProcess) {
    let server = api.listen().await;
    let channel = Channel::from_shared(server.url.clone()).unwrap();
    (channel.connect().await.unwrap(), server)
}

fn subject(resource: &str, name: &str) -> Option<ObjectRef> {
    Some(ObjectRef {
        resource: resource.into(),
        namespace: "default".into(),
        name: name.into(),
    })
}

/// Calls a method about the ConfigMap `a` or its namespace. Returns the message if the gateway forbids it.
async fn call(channel: &Channel, method: &str, user: &str) -> Option<String> {
    let channel = channel.clone();
    let (resource, namespace, name) = ("configmaps", "default", "a");
    let outcome = match method {
        "Metadata/Get" => {
            let request = GetMetadataRequest {
                resource: resource.into(),
                namespace: namespace.into(),
                name: name.into(),
                ..Default::default()
            };
            let mut client = MetadataClient::new(channel);
            client.get(of_user(request, user, &[])).await.map(drop)
        }
        "Metadata/List" => {
            let request = ListMetadataRequest {
                namespace: namespace.into(),
                ..Default::default()
            };
            let mut client = MetadataClient::new(channel);
            client.list(of_user(request, user, &[])).await.map(drop)
        }
        "Metadata/Count" => {
            let request = CountMetadataRequest {
                namespace: namespace.into(),
                resources: vec![resource.into()],
                ..Default::default()
            };
            let mut client = MetadataClient::new(channel);
            client.count(of_user(request, user, &[])).await.map(drop)
        }
        "Metadata/Watch" => {
            let request = WatchMetadataRequest::default();
            let mut client = MetadataClient::new(channel);
            client.watch(of_user(request, user, &[])).await.map(drop)
        }
        "Metadata/Remove" => {
            let request = RemoveMetadataRequest {
                resource: resource.into(),
                namespace: namespace.into(),
                name: name.into(),
                ..Default::default()
            };
            let mut client = MetadataClient::new(channel);
            client.remove(of_user(request, user, &[])).await.map(drop)
        }
        "Explain/Why" => {
            let request = WhyRequest {
                subject: subject(resource, name),
            };
            let mut client = ExplainClient::new(channel);
            client.why(of_user(request, user, &[])).await.map(drop)
        }
        "Explain/History" => {
            let request = HistoryRequest {
                subject: subject(resource, name),
                ..Default::default()
            };
            let mut client = ExplainClient::new(channel);
            client.history(of_user(request, user, &[])).await.map(drop)
        }
        "Metrics/Custom" => {
            let request = CustomMetricRequest {
                resource: "pods".into(),
                namespace: namespace.into(),
                metric: "rate".into(),
                ..Default::default()
            };
            let mut client = MetricsClient::new(channel);
            client.custom(of_user(request, user, &[])).await.map(drop)
        }
        "Metrics/External" => {
            let request = ExternalMetricRequest {
                namespace: namespace.into(),
                metric: "rate".into(),
                ..Default::default()
            };
            let mut client = MetricsClient::new(channel);
            client.external(of_user(request, user, &[])).await.map(drop)
        }
        _ => {
            let request = tokio_stream::iter([ServerReflectionRequest::default()]);
            let mut client = ServerReflectionClient::new(channel);
            let request = of_user(request, user, &[]);
            client.server_reflection_info(request).await.map(drop)
        }
    };
    let error = ApiError::from(outcome.err()?);
    (error.reason == Reason::Forbidden).then_some(error.message)
}

#[tokio::test]
async fn each_method_needs_the_permission_of_its_row() {
    let api = Api::with_rbac().await;
    api.configmap("a").await;
    let (channel, _server) = connect(&api).await;
    let configmap =
        "\"a\" is forbidden: User \"user\" cannot VERB resource \"configmaps\" in API group \"\"";
    let everything =
        "*.* is forbidden: User \"user\" cannot VERB resource \"*\" in API group \"*\"";
    let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    let reflection = json!({ "verbs": ["post"], "nonResourceURLs": [path] });
    let rows: [(&str, &str, &str, Value); 10] = [
        (
            "Metadata/Get",
            "get",
            configmap,
            rule("get", "core", "configmaps"),
        ),
        ("Metadata/List", "list", everything, rule("list", "*", "*")),
        (
            "Metadata/Count",
            "list",
            "configmaps is forbidden",
            rule("list", "core", "configmaps"),
        ),
        (
            "Metadata/Watch",
            "watch",
            everything,
            rule("watch", "*", "*"),
        ),
        (
            "Metadata/Remove",
            "patch",
            configmap,
            rule("patch", "core", "configmaps"),
        ),
        (
            "Explain/Why",
            "get",
            configmap,
            rule("get", "core", "configmaps"),
        ),
        (
            "Explain/History",
            "get",
            configmap,
            rule("get", "core", "configmaps"),
        ),
        (
            "Metrics/Custom",
            "get",
            "cannot get resource \"pods/rate\" in API group \"custom.metrics.k8s.io\"",
            rule("get", "custom.metrics.k8s.io", "pods/rate"),
        ),
        (
            "Metrics/External",
            "get",
            "cannot get resource \"rate\" in API group \"external.metrics.k8s.io\"",
            rule("get", "external.metrics.k8s.io", "rate"),
        ),
        ("Reflection", "post", "cannot post path", reflection),
    ];
    for (number, (method, verb, expected, needed)) in rows.into_iter().enumerate() {
        let user = format!("user-{number}");
        let refused = call(&channel, method, &user).await.expect(method);
        let expected = expected
            .replace("VERB", verb)
            .replace("\"user\"", &format!("{user:?}"));
        assert!(refused.contains(&expected), "{method}: {refused}");
        // A rule of a path is in effect when the one that is written with it is.
        let known = rule("get", "core", "nodes");
        let needed = match needed.get("nonResourceURLs") {
            Some(_) => json!([needed, known]),
            None => json!([needed]),
        };
        api.grant(&user, needed).await;
        assert_eq!(call(&channel, method, &user).await, None, "{method}");
    }
}

/// Rules for kinds do not add up to all kinds, of which more may be defined later.
#[tokio::test]
async fn the_metadata_of_all_kinds_needs_a_rule_for_all_kinds() {
    let api = Api::with_rbac().await;
    let (channel, _server) = connect(&api).await;
    api.grant(
        "jane",
        json!([rule("list watch", "core", "*"), rule("list", "apps", "*")]),
    )
    .await;
    for method in ["Metadata/List", "Metadata/Watch"] {
        assert!(call(&channel, method, "jane").await.is_some(), "{method}");
    }
}

#[tokio::test]
async fn the_history_of_a_secret_is_for_those_who_may_get_it() {
    let api = Api::with_rbac().await;
    let secret =
        |value: &str| json!({ "metadata": { "name": "key" }, "stringData": { "key": value } });
    let secrets = "/api/v1/namespaces/default/secrets";
    api.post(secrets, secret("one")).await.ok();
    api.put(&format!("{secrets}/key"), secret("two")).await.ok();
    let (channel, _server) = connect(&api).await;
    api.grant("lisa", json!([rule("list watch", "core", "secrets")]))
        .await;
    api.grant("greta", json!([rule("get", "core", "secrets")]))
        .await;
    let mut client = ExplainClient::new(channel);
    let request = HistoryRequest {
        subject: subject("secrets", "key"),
        diff: true,
        ..Default::default()
    };
    let refused = client.history(of_user(request.clone(), "lisa", &[])).await;
    let refused = ApiError::from(refused.unwrap_err());
    assert_eq!(refused.reason, Reason::Forbidden);
    assert!(refused.message.contains("cannot get resource \"secrets\""));
    let history = client
        .history(of_user(request, "greta", &[]))
        .await
        .unwrap();
    let versions = history.into_inner().versions;
    let changes = versions.iter().flat_map(|version| &version.changes);
    assert!(
        changes
            .into_iter()
            .any(|change| change.path.starts_with("data"))
    );
}

async fn why(channel: &Channel, user: &str, resource: &str, name: &str) -> WhyResponse {
    let request = WhyRequest {
        subject: subject(resource, name),
    };
    let mut client = ExplainClient::new(channel.clone());
    let answer = client.why(of_user(request, user, &[])).await;
    answer.unwrap().into_inner()
}

/// Creates a Deployment, its ReplicaSet, a Pod of that which is not ready, and an Event about the Deployment.
async fn deploy(api: &Api) {
    let meta = |name: &str| json!({ "name": name, "labels": { "app": "web" } });
    let container = json!({ "name": "a", "image": "a" });
    let template = json!({ "metadata": meta("web"), "spec": { "containers": [container] } });
    let spec = json!({ "selector": { "matchLabels": { "app": "web" } }, "template": template });
    let owned = |name: &str, kind: &str, owner: &Value| {
        let mut meta = meta(name);
        meta["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": kind, "controller": true,
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        }]);
        meta
    };
    let web = json!({ "metadata": meta("web"), "spec": spec });
    let web = api.post(DEPLOYMENTS, web).await.ok();
    let set = json!({ "metadata": owned("web-1", "Deployment", &web), "spec": spec });
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    let set = api.post(sets, set).await.ok();
    let pod = json!({ "metadata": owned("web-1-a", "ReplicaSet", &set), "spec": template["spec"] });
    api.post("/api/v1/namespaces/default/pods", pod).await.ok();
    let about = json!({
        "kind": "Deployment", "apiVersion": "apps/v1", "namespace": "default", "name": "web",
        "uid": web["metadata"]["uid"],
    });
    let event = json!({ "metadata": { "name": "e" }, "involvedObject": about, "reason": "Seen", "type": "Normal" });
    api.post("/api/v1/namespaces/default/events", event)
        .await
        .ok();
}

#[tokio::test]
async fn an_explanation_has_of_other_objects_only_those_that_its_reader_may_read() {
    let api = Api::with_rbac().await;
    deploy(&api).await;
    let (channel, _server) = connect(&api).await;
    let deployments = rule("get", "apps", "deployments");
    api.grant("lou", json!([deployments])).await;
    api.grant(
        "max",
        json!([deployments, rule("list", "core", "pods events")]),
    )
    .await;
    let little = why(&channel, "lou", "deployments", "web").await;
    assert_eq!(
        (little.events.len(), little.kind.as_str()),
        (0, "Deployment")
    );
    assert!(
        little.waits.iter().all(|wait| wait.on.is_none()),
        "{little:?}"
    );
    let more = why(&channel, "max", "deployments", "web").await;
    assert_eq!(more.events[0].reason, "Seen");
    assert!(more.waits.iter().any(|wait| wait.on.is_some()), "{more:?}");

    // The owner of an owner is known from that one alone.
    api.grant("pia", json!([rule("get", "core", "pods")])).await;
    api.grant(
        "rob",
        json!([
            rule("get", "apps", "replicasets"),
            rule("get", "core", "pods")
        ]),
    )
    .await;
    let owners = |answer: WhyResponse| answer.owners.into_iter().map(|one| one.name);
    let known: Vec<_> = owners(why(&channel, "pia", "pods", "web-1-a").await).collect();
    assert_eq!(known, ["web-1"]);
    let known: Vec<_> = owners(why(&channel, "rob", "pods", "web-1-a").await).collect();
    assert_eq!(known, ["web-1", "web"]);
}

/// Returns the writer and the term in the cause of a ConfigMap that a user creates as this field manager.
async fn writer(channel: &Channel, user: &str, groups: &[&str], manager: &str) -> (String, u64) {
    let mut map = ConfigMap::default();
    map.metadata.namespace = "default".into();
    map.metadata.name = format!("{}-{manager}", user.replace(':', "-"));
    let request = CreateRequest {
        resource: ConfigMap::RESOURCE.into(),
        namespace: "default".into(),
        object: Some(Any::pack(&map)),
        field_manager: manager.into(),
        ..Default::default()
    };
    let mut client = ObjectsClient::new(channel.clone());
    let created = client.create(of_user(request, user, groups)).await.unwrap();
    let cause = created.into_inner().cause.unwrap();
    (cause.writer, cause.term)
}

#[tokio::test]
async fn a_user_cannot_speak_for_a_controller() {
    let api = Api::with_rbac().await;
    let (channel, _server) = connect(&api).await;
    let create = || json!([rule("create", "core", "configmaps")]);
    for user in ["jane", "system:setpoint:job-controller"] {
        api.cluster_role(&format!("of-{user}"), create()).await;
        api.bind_everywhere(&format!("of-{user}"), &format!("User:{user}"))
            .await;
        let asked = json!({ "verb": "create", "resource": "configmaps", "namespace": "default" });
        api.until_allowed(json!({ "user": user, "resourceAttributes": asked }))
            .await;
    }
    let job = "job-controller";
    let written = writer(&channel, "system:setpoint:job-controller", &[], job).await;
    assert_eq!(written.0, job);
    let written = writer(&channel, "jane", &["system:authenticated"], job).await;
    assert_eq!(written.0, "jane/job-controller");
    let written = writer(&channel, "system:setpoint:job-controller", &[], "scheduler").await;
    assert_eq!(written.0, "system:setpoint:job-controller/scheduler");

    // Over HTTP, too.
    let map = json!({ "metadata": { "name": "b" } });
    let path = format!("{CONFIGMAPS}?fieldManager=scheduler");
    api.user("jane").post(&path, map).await.ok();
    let request = HistoryRequest {
        subject: subject("configmaps", "b"),
        ..Default::default()
    };
    let history = ExplainClient::new(channel).history(request).await.unwrap();
    let cause = history.into_inner().versions.remove(0).cause.unwrap();
    assert_eq!(cause.writer, "jane/scheduler");
}
