//! A controller of kube: each Website has a ConfigMap with its page and a Deployment that serves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::{HeaderValue, Request};
use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, ResourceExt as _};
use kube::client::Body;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{self, Event, finalizer};
use kube::runtime::wait::{await_condition, conditions::is_crd_established};
use kube::runtime::watcher;
use kube::{Api, Client, CustomResource, CustomResourceExt as _, Resource as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower::service_fn;

const MANAGER: &str = "website-operator";
const FINALIZER: &str = "websites.example.com/cleanup";
/// The ConfigMap that lists the names of removed Websites.
pub const REMOVED: &str = "removed-websites";
/// The header of a request, and the annotation of a Website, with the trace that they belong to.
pub const TRACEPARENT: &str = "traceparent";
const RETRY: Duration = Duration::from_millis(200);

/// The desired state of a Website.
#[derive(Clone, Debug, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "websites.example.com",
    version = "v1",
    kind = "Website",
    namespaced,
    shortname = "site",
    status = "WebsiteStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    )
)]
pub struct WebsiteSpec {
    html: String,
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 9))]
    replicas: i32,
}

fn one() -> i32 {
    1
}

/// The observed state of a Website.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WebsiteStatus {
    replicas: i32,
    observed_generation: i64,
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    conditions: Vec<Condition>,
}

/// A condition in the usual form.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Condition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
    #[schemars(extend("format" = "date-time"))]
    last_transition_time: String,
}

/// The dependencies of a reconcile.
pub struct Operator {
    client: Client,
    reconciles: AtomicUsize,
}

impl Operator {
    /// Applies the definition, and waits until it is established.
    pub async fn install(client: Client) -> Arc<Self> {
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let name = Website::crd_name();
        let params = PatchParams::apply(MANAGER);
        let definition = Patch::Apply(Website::crd());
        let applied = definitions.patch(name, &params, &definition).await;
        applied.expect("the definition is valid");
        let established = await_condition(definitions, name, is_crd_established());
        established.await.expect("it can be watched");
        Arc::new(Self {
            client,
            reconciles: AtomicUsize::new(0),
        })
    }

    /// Returns the number of reconciles that have ended.
    pub fn reconciles(&self) -> usize {
        self.reconciles.load(Ordering::Relaxed)
    }

    /// Runs the controller until dropped.
    pub async fn run(self: Arc<Self>) {
        let config = watcher::Config::default;
        let websites: Api<Website> = Api::default_namespaced(self.client.clone());
        let deployments: Api<Deployment> = Api::default_namespaced(self.client.clone());
        let config_maps: Api<ConfigMap> = Api::default_namespaced(self.client.clone());
        let controller = Controller::new(websites, config())
            .owns(deployments, config())
            .owns(config_maps, config());
        let results = controller.run(reconcile, |_, _, _| Action::requeue(RETRY), self);
        results
            .for_each(|result| async move {
                if let Err(error) = result {
                    eprintln!("website-operator: {error}");
                }
            })
            .await;
    }

    /// Returns a client for the reconcile of a Website, whose requests belong to the trace that the Website names.
    fn client(&self, website: &Website) -> Client {
        let parent = website.annotations().get(TRACEPARENT);
        match parent.and_then(|parent| HeaderValue::from_str(parent).ok()) {
            Some(parent) => traced(self.client.clone(), parent),
            None => self.client.clone(),
        }
    }

    async fn apply(&self, website: &Website) -> Result<Action, kube::Error> {
        let (name, client) = (website.name_any(), self.client(website));
        let config_maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let params = PatchParams::apply(MANAGER).force();
        config_maps
            .patch(&name, &params, &Patch::Apply(page(website)))
            .await?;
        let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
        let server = Patch::Apply(server(website));
        let deployment = deployments.patch(&name, &params, &server).await?;
        let ready = deployment.status.and_then(|status| status.ready_replicas);
        let status = status(website, ready.unwrap_or_default());
        let websites: Api<Website> = Api::default_namespaced(client);
        websites
            .patch_status(&name, &params, &Patch::Apply(status))
            .await?;
        Ok(Action::await_change())
    }

    async fn clean_up(&self, website: &Website) -> Result<Action, kube::Error> {
        let config_maps: Api<ConfigMap> = Api::default_namespaced(self.client(website));
        let removed = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": REMOVED },
            "data": { website.name_any(): "removed" },
        });
        let params = PatchParams::apply(MANAGER).force();
        config_maps
            .patch(REMOVED, &params, &Patch::Apply(removed))
            .await?;
        Ok(Action::await_change())
    }
}

/// Returns a client whose requests have this header.
pub fn traced(client: Client, parent: HeaderValue) -> Client {
    let namespace = client.default_namespace().to_owned();
    let send = move |mut request: Request<Body>| {
        request.headers_mut().insert(TRACEPARENT, parent.clone());
        let client = client.clone();
        async move { client.send(request).await }
    };
    Client::new(service_fn(send), namespace)
}

async fn reconcile(
    website: Arc<Website>,
    operator: Arc<Operator>,
) -> Result<Action, finalizer::Error<kube::Error>> {
    let websites: Api<Website> = Api::default_namespaced(operator.client(&website));
    let done = finalizer(&websites, FINALIZER, website, |event| async {
        match event {
            Event::Apply(website) => operator.apply(&website).await,
            Event::Cleanup(website) => operator.clean_up(&website).await,
        }
    });
    let done = done.await;
    operator.reconciles.fetch_add(1, Ordering::Relaxed);
    done
}

fn metadata(website: &Website) -> Value {
    json!({
        "name": website.name_any(),
        "ownerReferences": [website.controller_owner_ref(&())],
    })
}

fn page(website: &Website) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(website),
        "data": { "index.html": website.spec.html },
    })
}

fn server(website: &Website) -> Value {
    let name = website.name_any();
    let labels = json!({ "website": name });
    let mount = json!({ "name": "page", "mountPath": "/usr/share/nginx/html" });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(website),
        "spec": {
            "replicas": website.spec.replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "containers": [{ "name": "nginx", "image": "nginx:1.25", "volumeMounts": [mount] }],
                    "volumes": [{ "name": "page", "configMap": { "name": name } }],
                },
            },
        },
    })
}

/// Returns the configuration of the status. The condition keeps its time while it keeps its status.
fn status(website: &Website, ready: i32) -> Value {
    let status = if ready >= website.spec.replicas {
        "True"
    } else {
        "False"
    };
    let mut before = website.status.iter().flat_map(|status| &status.conditions);
    let same = before.find(|condition| condition.status == status);
    let since = same.map(|condition| condition.last_transition_time.clone());
    let condition = Condition {
        r#type: "Ready".to_owned(),
        status: status.to_owned(),
        reason: "Counted".to_owned(),
        message: format!("{ready} of {} replicas are ready", website.spec.replicas),
        last_transition_time: since.unwrap_or_else(|| jiff::Timestamp::now().to_string()),
    };
    json!({
        "apiVersion": Website::api_version(&()),
        "kind": Website::kind(&()),
        "status": WebsiteStatus {
            replicas: ready,
            observed_generation: website.metadata.generation.unwrap_or_default(),
            conditions: vec![condition],
        },
    })
}
