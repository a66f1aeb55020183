//! Each verb on each resource, by each user, over HTTP and gRPC.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use setpoint_gateway::AuthorizationMode as Mode;
use setpoint_proto::core::{ConfigMap, Pod};
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_proto::setpoint::{
    CreateRequest, DeleteRequest, GetRequest, ListRequest, PatchRequest, UpdateRequest,
    WatchRequest,
};
use setpoint_proto::{Any, ApiError, Reason};
use setpoint_store::Memory;
use tonic::transport::Channel;

use super::super::api::Api;
use super::{User, registry, registry_over, rule};

/// A question to the gateway.
#[derive(Clone, Copy, Debug)]
struct Asked {
    verb: &'static str,
    resource: &'static str,
    namespace: &'static str,
    name: &'static str,
}

const RESOURCES: [&str; 2] = ["configmaps", "pods"];
const NAMESPACES: [&str; 2] = ["default", "other"];
const VERBS: [(&str, &str); 10] = [
    ("get", "a"),
    ("get", "b"),
    ("list", ""),
    ("list", "a"),
    ("watch", ""),
    ("create", ""),
    ("update", "b"),
    ("patch", "b"),
    ("delete", "b"),
    ("deletecollection", ""),
];

/// Each user with its groups, and whether it may do something.
#[allow(clippy::type_complexity, reason = "a table")]
const USERS: [(&str, &[&str], fn(&Asked) -> bool); 7] = [
    ("nobody", &[], |_| false),
    ("root", &["system:masters"], |_| true),
    ("jane", &["readers"], |asked| {
        asked.resource == "pods" && ["get", "list", "watch"].contains(&asked.verb)
    }),
    ("ed", &[], |asked| {
        let verbs = ["create", "update", "patch", "delete", "deletecollection"];
        asked.resource == "configmaps"
            && asked.namespace == "default"
            && verbs.contains(&asked.verb)
    }),
    ("nora", &[], |asked| {
        asked.resource == "configmaps"
            && asked.namespace == "default"
            && asked.name == "a"
            && ["get", "list"].contains(&asked.verb)
    }),
    ("system:serviceaccount:default:web", &[], |asked| {
        asked.namespace == "other" && asked.verb == "get"
    }),
    ("star", &[], |asked| asked.verb == "watch"),
];

async fn prepare(api: &Api) {
    let other = json!({ "metadata": { "name": "other" } });
    api.post("/api/v1/namespaces", other).await.ok();
    api.cluster_role("reader", json!([rule("get list watch", "core", "pods")]))
        .await;
    api.bind_everywhere("reader", "Group:readers").await;
    let writes = "create update patch delete deletecollection";
    api.role("editor", json!([rule(writes, "core", "configmaps")]))
        .await;
    api.bind("Role", "editor", "User:ed").await;
    let mut named = rule("get list watch", "core", "configmaps");
    named["resourceNames"] = json!(["a"]);
    api.role("named", json!([named])).await;
    api.bind("Role", "named", "User:nora").await;
    api.cluster_role("get", json!([rule("get", "*", "*")]))
        .await;
    let bindings = format!("{}/namespaces/other/rolebindings", super::RBAC);
    let binding = super::binding("ClusterRole", "get", "ServiceAccount:default/web");
    api.post(&bindings, binding).await.ok();
    api.cluster_role("watch", json!([rule("watch", "core", "*")]))
        .await;
    api.bind_everywhere("watch", "User:star").await;
}

/// Returns the questions of these verbs.
fn questions(verbs: &[(&'static str, &'static str)]) -> Vec<Asked> {
    let mut all = Vec::new();
    for resource in RESOURCES {
        for namespace in NAMESPACES {
            all.extend(verbs.iter().map(|(verb, name)| Asked {
                verb,
                resource,
                namespace,
                name,
            }));
        }
    }
    all
}

/// Calls `ask` for each question of each user, which returns the message if the gateway forbids it. What is allowed
/// must be allowed at some time, since the gateway reads the roles after their write; then nothing else is.
async fn check_all(
    verbs: &[(&'static str, &'static str)],
    ask: impl AsyncFn(&str, &[&str], &Asked) -> Option<String>,
) {
    for allowed in [true, false] {
        for (user, groups, may) in USERS {
            for asked in questions(verbs)
                .iter()
                .filter(|asked| may(asked) == allowed)
            {
                let mut answer = ask(user, groups, asked).await;
                for _ in 0..200 {
                    if !allowed || answer.is_none() {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    answer = ask(user, groups, asked).await;
                }
                match answer {
                    None => assert!(allowed, "{user} may {asked:?}"),
                    Some(message) => {
                        assert!(!allowed, "{user} may not {asked:?}: {message}");
                        assert_eq!(message, forbidden(user, asked));
                    }
                }
            }
        }
    }
}

/// Returns upstream's text.
fn forbidden(user: &str, asked: &Asked) -> String {
    let Asked {
        verb,
        resource,
        namespace,
        name,
    } = asked;
    let of = match *name {
        "" => (*resource).to_owned(),
        name => format!("{resource} {name:?}"),
    };
    format!(
        "{of} is forbidden: User {user:?} cannot {verb} resource {resource:?} in API group \"\" \
        in the namespace {namespace:?}"
    )
}

/// Checks DG19: each verb by its own name.
#[tokio::test]
async fn roles_decide_about_each_verb_over_http() {
    let api = Api::with_rbac().await;
    prepare(&api).await;
    check_all(&VERBS, async |name, groups, asked| {
        let user = User {
            api: &api,
            name,
            groups,
        };
        over_http(&user, asked).await
    })
    .await;
}

async fn over_http(user: &User<'_>, asked: &Asked) -> Option<String> {
    let collection = format!("/api/v1/namespaces/{}/{}", asked.namespace, asked.resource);
    let selected = match asked.name {
        "" => String::new(),
        name => format!("fieldSelector=metadata.name={name}"),
    };
    let object = format!("{collection}/{}", asked.name);
    let (method, path) = match asked.verb {
        "get" => ("GET", object),
        "list" => ("GET", format!("{collection}?{selected}")),
        "watch" => (
            "GET",
            format!("{collection}?watch=1&timeoutSeconds=1&{selected}"),
        ),
        "create" => ("POST", collection),
        "update" => ("PUT", object),
        "patch" => ("PATCH", object),
        "delete" => ("DELETE", object),
        _ => ("DELETE", collection),
    };
    let of = match asked.verb {
        "patch" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = user.request(method, &path).header("content-type", of);
    let body = match method {
        "GET" | "DELETE" => String::new(),
        _ => json!({ "metadata": { "name": "b" } }).to_string(),
    };
    let response = user.api.open(request, body).await;
    if response.status() != StatusCode::FORBIDDEN {
        return None;
    }
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await;
    let status: Value = serde_json::from_slice(&body.unwrap()).unwrap();
    assert_eq!(status["reason"], "Forbidden");
    assert_eq!(status["details"]["kind"], asked.resource);
    Some(status["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn roles_decide_about_each_verb_over_grpc() {
    let registry = registry(&[Mode::Rbac]).await;
    let api = Api::over(registry).await;
    prepare(&api).await;
    let server = api.listen().await;
    let channel = Channel::from_shared(server.url.clone()).unwrap();
    let client = ObjectsClient::new(channel.connect().await.unwrap());
    // There is no method for deletecollection.
    check_all(&VERBS[..9], async |user, groups, asked| {
        over_grpc(client.clone(), user, groups, asked).await
    })
    .await;
}

pub fn of_user<T>(message: T, user: &str, groups: &[&str]) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    let metadata = request.metadata_mut();
    metadata.insert("impersonate-user", user.parse().unwrap());
    for group in groups {
        metadata.append("impersonate-group", group.parse().unwrap());
    }
    request
}

async fn over_grpc(
    mut client: ObjectsClient<Channel>,
    user: &str,
    groups: &[&str],
    asked: &Asked,
) -> Option<String> {
    let (resource, namespace) = (asked.resource.to_owned(), asked.namespace.to_owned());
    let name = asked.name.to_owned();
    macro_rules! call {
        ($method:ident, $message:expr) => {
            client
                .$method(of_user($message, user, groups))
                .await
                .map(|_| ())
        };
    }
    let object = match asked.resource {
        "pods" => Any::pack(&Pod::default()),
        _ => Any::pack(&ConfigMap::default()),
    };
    let outcome = match asked.verb {
        "get" => call!(
            get,
            GetRequest {
                resource,
                namespace,
                name,
                ..Default::default()
            }
        ),
        "list" => {
            let field_selector = match name.as_str() {
                "" => String::new(),
                name => format!("metadata.name={name}"),
            };
            call!(
                list,
                ListRequest {
                    resource,
                    namespace,
                    field_selector,
                    ..Default::default()
                }
            )
        }
        "watch" => call!(
            watch,
            WatchRequest {
                resource,
                namespace,
                ..Default::default()
            }
        ),
        "create" => call!(
            create,
            CreateRequest {
                resource,
                namespace,
                object: Some(object),
                ..Default::default()
            }
        ),
        "update" => call!(
            update,
            UpdateRequest {
                resource,
                namespace,
                name,
                object: Some(object),
                ..Default::default()
            }
        ),
        "patch" => {
            let patch = b"{}".as_slice().into();
            call!(
                patch,
                PatchRequest {
                    resource,
                    namespace,
                    name,
                    patch,
                    r#type: Type::Merge.into(),
                    ..Default::default()
                }
            )
        }
        "delete" => call!(
            delete,
            DeleteRequest {
                resource,
                namespace,
                name,
                ..Default::default()
            }
        ),
        verb => panic!("there is no method for {verb}"),
    };
    let error = ApiError::from(outcome.err()?);
    (error.reason == Reason::Forbidden).then_some(error.message)
}

#[tokio::test]
async fn paths_are_allowed_by_rules_of_paths() {
    let api = Api::with_rbac().await;
    let paths = json!({ "verbs": ["get"], "nonResourceURLs": ["/version", "/openapi/*"] });
    let rules = json!([paths, rule("get", "core", "pods")]);
    api.grant("pat", rules).await;
    let pat = api.user("pat");
    pat.get("/version").await.ok();
    pat.get("/openapi/v2").await.ok();
    let refused = pat.get("/apis").await.refused(403, "Forbidden");
    assert_eq!(refused, "forbidden: User \"pat\" cannot get path \"/apis\"");
}

#[tokio::test]
async fn a_subresource_is_another_right_than_its_object() {
    let api = Api::with_rbac().await;
    api.grant(
        "stella",
        json!([rule("patch", "apps", "deployments/status")]),
    )
    .await;
    let path = "/apis/apps/v1/namespaces/default/deployments/x";
    let patch = async |path: &str| {
        let of = "application/merge-patch+json";
        api.user("stella").send("PATCH", path, of, json!({})).await
    };
    patch(&format!("{path}/status"))
        .await
        .refused(404, "NotFound");
    let refused = patch(path).await.refused(403, "Forbidden");
    assert_eq!(
        refused,
        "deployments.apps \"x\" is forbidden: User \"stella\" cannot patch resource \"deployments\" in API group \
        \"apps\" in the namespace \"default\""
    );
    let refused = patch(&format!("{path}/scale"))
        .await
        .refused(403, "Forbidden");
    assert!(refused.contains("\"deployments/scale\""), "{refused}");
}

#[tokio::test]
async fn permissions_end_with_their_binding_and_a_denial_names_roles_that_are_gone() {
    let api = Api::with_rbac().await;
    api.grant("jane", json!([rule("list", "core", "pods")]))
        .await;
    let jane = api.user("jane");
    let pods = "/api/v1/pods";
    jane.get(pods).await.ok();
    let until_refused = async || {
        for _ in 0..200 {
            let reply = jane.get(pods).await;
            if reply.code == 403 {
                return reply.refused(403, "Forbidden");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("jane still has the permission");
    };
    api.delete(&format!("{}/clusterroles/of-jane", super::RBAC))
        .await
        .ok();
    assert_eq!(
        until_refused().await,
        "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" at the cluster scope: \
        RBAC: clusterrole.rbac.authorization.k8s.io \"of-jane\" not found"
    );
    let binding = format!("{}/clusterrolebindings/of-jane-jane", super::RBAC);
    api.delete(&binding).await.ok();
    for _ in 0..200 {
        if !until_refused().await.contains("RBAC:") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the binding is still there");
}

#[tokio::test]
async fn roles_that_exist_are_in_effect_from_the_first_request_of_another_gateway() {
    let store = Arc::new(Memory::default());
    let api = Api::over(registry_over(store.clone(), &[Mode::Rbac]).await).await;
    api.grant("jane", json!([rule("list", "core", "pods")]))
        .await;
    for _ in 0..20 {
        let registry = registry_over(store.clone(), &[Mode::Rbac]).await;
        let reply = Api::of(registry).user("jane").get("/api/v1/pods").await;
        reply.ok();
    }
}

#[tokio::test]
async fn the_mode_always_deny_forbids_all_but_the_masters() {
    let api = Api::over(registry(&[Mode::AlwaysDeny]).await).await;
    let refused = api.user("jane").get("/api/v1/pods").await;
    let refused = refused.refused(403, "Forbidden");
    assert!(
        refused.ends_with("at the cluster scope: Everything is forbidden."),
        "{refused}"
    );
    api.get("/api/v1/pods").await.ok();
}

#[tokio::test]
async fn a_request_that_a_service_may_not_make_is_counted() {
    let api = Api::with_rbac().await;
    for user in ["system:setpoint:scheduler", "jane"] {
        let reply = api.user(user).get("/api/v1/secrets").await;
        reply.refused(403, "Forbidden");
    }
    let families = prometheus::gather();
    let counts = |name: &str, label: &str| -> Vec<(String, f64)> {
        let family = families.iter().find(|family| family.name() == name);
        let metrics = family.unwrap().get_metric().iter();
        let counted = metrics.map(|metric| {
            let value = metric.get_label().iter().find(|pair| pair.name() == label);
            (
                value.unwrap().value().to_owned(),
                metric.get_counter().get_value(),
            )
        });
        counted.collect()
    };
    let of_services = counts("setpoint_refused_service_requests_total", "service");
    assert_eq!(of_services, [("scheduler".to_owned(), 1.0)]);
    let of_all = counts("authorization_attempts_total", "result");
    assert!(
        of_all.contains(&("no-opinion".to_owned(), 2.0)),
        "{of_all:?}"
    );
}
