//! APIServices of other servers: their availability, discovery, and the requests that are forwarded.

mod availability;
mod discovery;
mod metrics;
mod requests;
mod server;
mod swagger;

use serde_json::{Value, json};
use tokio_util::sync::DropGuard;

use crate::http::api::Api;
use server::{Discovery, Extension, FLUNDERS, GROUP, VERSION};

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const SERVICE: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.wardle.example.com";
const AUTHENTICATION: &str =
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";

/// A gateway with its background tasks, and another server that it knows.
struct Plane {
    api: Api,
    extension: Extension,
    _background: DropGuard,
}

impl Plane {
    /// Starts both, and waits until the server is available.
    async fn start(discovery: Discovery) -> Self {
        let plane = Self::unregistered(discovery).await;
        plane.register(plane.spec(), true).await;
        plane.until("Passed").await;
        plane
    }

    /// Starts both. The server accepts only clients with the certificate of the front proxy.
    async fn unregistered(discovery: Discovery) -> Self {
        let api = Api::start().await;
        let background = api.run_background();
        let published = api
            .eventually(AUTHENTICATION, |reply| reply.code == 200)
            .await;
        let ca = &published.json()["data"]["requestheader-client-ca-file"];
        let extension = Extension::start(discovery, ca.as_str()).await;
        Self {
            api,
            extension,
            _background: background,
        }
    }

    /// Returns the spec of the APIService.
    fn spec(&self) -> Value {
        let server = &self.extension.server;
        json!({
            "group": GROUP, "version": "v1alpha1",
            "groupPriorityMinimum": 2000, "versionPriority": 200,
            "caBundle": server.ca_bundle,
            "service": { "namespace": "default", "name": "extension", "port": server.port },
        })
    }

    /// Creates the APIService, and a Service that leads to the server.
    async fn register(&self, spec: Value, with_service: bool) {
        if with_service {
            self.serve().await;
        }
        let service =
            json!({ "metadata": { "name": "v1alpha1.wardle.example.com" }, "spec": spec });
        let created = self.api.post(SERVICES, service).await;
        assert!(!created.headers.contains_key("warning"), "{created:?}");
        created.ok();
    }

    /// Creates a Service that leads to the server. The API refuses endpoints with loopback addresses.
    async fn serve(&self) {
        let service = json!({
            "metadata": { "name": "extension" },
            "spec": { "type": "ExternalName", "externalName": "localhost" },
        });
        let services = "/api/v1/namespaces/default/services";
        self.api.post(services, service).await.ok();
    }

    /// Waits until the condition has a reason. Returns the condition.
    async fn until(&self, reason: &str) -> Value {
        let has = |found: &Value| found["status"]["conditions"][0]["reason"] == reason;
        let found = self
            .api
            .eventually(SERVICE, |reply| has(&reply.json()))
            .await;
        found.json()["status"]["conditions"][0].take()
    }
}
