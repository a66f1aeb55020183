//! The user of a request: by its certificate, by its token, or the anonymous one.

mod anonymous;
mod certificates;
mod issuers;
pub mod legacy_tokens;
mod token_webhook;
mod tokens;

use axum::body::Body;
use http::Request;
use http::header::CONTENT_TYPE;
use http::request::Builder;
use serde_json::{Value, json};
use setpoint_gateway::registry::Registry;
use setpoint_gateway::{AuthenticationOptions, AuthorizationMode, in_process};
use setpoint_host::serve::ConnectionInfo;
use setpoint_store::Memory;
use setpoint_store::cache::Settings;
use setpoint_tls::PeerIdentity;

use super::api::{Api, Reply};

/// The path by which users ask who they are.
pub const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";

/// The client of a connection, as its handshake has identified it.
pub type Client = Result<Option<PeerIdentity>, String>;

/// Returns the identity of a certificate that is valid for a long time.
pub fn peer(name: &str, groups: &[&str]) -> PeerIdentity {
    PeerIdentity {
        name: name.into(),
        groups: groups.iter().map(ToString::to_string).collect(),
        uid: String::new(),
        fingerprint: "ab".repeat(32),
        not_after: "2100-01-01T00:00:00Z".parse().unwrap(),
    }
}

/// Returns a client without a certificate.
pub fn nobody() -> Client {
    Ok(None)
}

impl Api {
    /// Starts a gateway with these options and the mode RBAC.
    async fn with_options(options: AuthenticationOptions) -> Self {
        let with = |registry: Registry| {
            let modes = [AuthorizationMode::Rbac];
            registry
                .with_authentication(options)
                .unwrap()
                .with_authorization(&modes)
        };
        let store = std::sync::Arc::new(Memory::default());
        Self::over(in_process::registry_with(store, Settings::default(), with).await).await
    }

    /// Sends a request on a TLS connection of a client.
    pub async fn send_over_tls(
        &self,
        client: &Client,
        request: Builder,
        body: impl Into<Body>,
    ) -> Reply {
        let local = ([127, 0, 0, 1], 6443).into();
        let connection = ConnectionInfo::over_tls(local, client.clone());
        self.send(request.extension(connection), body).await
    }

    /// Asks who the user of a request with these headers is.
    pub async fn identity(&self, client: &Client, headers: &[(&str, &str)]) -> Reply {
        let request = Request::post(WHOAMI).header(CONTENT_TYPE, "application/json");
        let add = |request: Builder, (name, value): &(&str, &str)| request.header(*name, *value);
        let request = headers.iter().fold(request, add);
        self.send_over_tls(client, request, "{}").await
    }

    /// Lets every user whom the gateway knows ask who it is, and reads of Secrets wait for that.
    async fn let_users_ask(&self) {
        let reviews = json!([{
            "verbs": ["create"],
            "apiGroups": ["authentication.k8s.io"],
            "resources": ["selfsubjectreviews"],
        }]);
        self.cluster_role("whoami", reviews).await;
        self.bind_everywhere("whoami", "Group:system:authenticated")
            .await;
        let asked = json!({
            "verb": "create", "group": "authentication.k8s.io", "resource": "selfsubjectreviews",
        });
        let groups = ["system:authenticated"];
        self.until_allowed(json!({ "groups": groups, "resourceAttributes": asked }))
            .await;
    }
}

/// Returns the user that a review is about.
fn user_info(reply: &Reply) -> Value {
    reply.ok()["status"]["userInfo"].clone()
}
