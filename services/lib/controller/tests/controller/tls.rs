//! The client over TLS, on real connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use parking_lot::Mutex;
use setpoint_controller::{Client, client};
use setpoint_gateway::in_process;
use setpoint_host::serve::{ConnectionInfo, Limits, bind, serve_with};
use setpoint_proto::Reason;
use setpoint_proto::core::Namespace;
use setpoint_store::Memory;
use setpoint_store::cache::Settings;
use setpoint_tls::Credentials;
use setpoint_tls::authority::{Authority, Leaf, Usage};
use tokio_util::sync::{CancellationToken, DropGuard};

/// A gateway on a port of the loopback.
struct Gateway {
    address: SocketAddr,
    /// The users of its requests, by their certificates.
    users: Arc<Mutex<Vec<String>>>,
    _stop: DropGuard,
}

impl Gateway {
    /// Starts a gateway whose certificate has this name.
    async fn start(authority: &Authority, host: &str) -> Self {
        Self::start_as(authority, "system:setpoint:gateway", &[host]).await
    }

    /// Starts what answers as a gateway, with the certificate of this user with these names.
    async fn start_as(authority: &Authority, user: &str, hosts: &[&str]) -> Self {
        let registry = in_process::registry(Arc::new(Memory::default()), Settings::default()).await;
        let users = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&users);
        let record = move |request: Request, next: Next| {
            let info = request.extensions().get::<ConnectionInfo>();
            let user = info.and_then(|info| info.client().map(|user| user.name.clone()));
            seen.lock().extend(user);
            next.run(request)
        };
        let router = in_process::router(registry).layer(from_fn(record));
        let credentials = credentials(authority, user, hosts);
        let listener = bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = serve_with(
            Some(credentials),
            listener,
            router,
            Limits::default(),
            stop.clone(),
        );
        tokio::spawn(serving);
        Self {
            address,
            users,
            _stop: stop.drop_guard(),
        }
    }
}

fn credentials(authority: &Authority, user: &str, hosts: &[&str]) -> Credentials {
    let leaf = Leaf {
        name: user.to_owned(),
        groups: vec!["system:setpoint".to_owned()],
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        usage: Usage::ServerAndClient,
        lifetime: Duration::from_secs(600),
    };
    authority.issue(&leaf).unwrap().credentials().unwrap()
}

/// Returns a client of these gateways that trusts `authority`.
fn client(authority: &Authority, gateways: &[&Gateway]) -> Client {
    let urls = gateways
        .iter()
        .map(|gateway| format!("https://{}", gateway.address));
    let settings = client::Settings {
        address: urls.collect::<Vec<_>>().join(","),
        ..client::Settings::default()
    };
    let credentials = credentials(authority, "system:setpoint:scheduler", &[]);
    Client::connect_with(&settings, Some(credentials), "test").unwrap()
}

fn namespace() -> Namespace {
    let mut namespace = Namespace::default();
    namespace.metadata.name = "a".to_owned();
    namespace
}

#[tokio::test]
async fn a_gateway_knows_its_client_by_the_certificate_of_the_client() {
    let authority = Authority::create("ca").unwrap();
    let gateway = Gateway::start(&authority, "gateway").await;
    let client = client(&authority, &[&gateway]);
    client.create(&namespace()).await.unwrap();
    let users = gateway.users.lock();
    assert!(!users.is_empty());
    assert!(users.iter().all(|user| user == "system:setpoint:scheduler"));
}

/// Checks V20: a process of the cluster that takes the port of a gateway does not pass for it, although its certificate
/// has the address.
#[tokio::test]
async fn a_client_passes_over_what_has_no_certificate_of_its_ca_with_the_name_of_a_gateway() {
    let [authority, other] = ["ca", "other"].map(|name| Authority::create(name).unwrap());
    let impostor = Gateway::start(&other, "gateway").await;
    let own = ["scheduler", "scheduler-0", "localhost", "127.0.0.1", "::1"];
    let elsewhere = Gateway::start_as(&authority, "system:setpoint:scheduler", &own).await;
    for wrong in [&impostor, &elsewhere] {
        let refused = client(&authority, &[wrong]).create(&namespace()).await;
        assert_eq!(refused.unwrap_err().reason, Reason::ServiceUnavailable);
    }
    let genuine = Gateway::start(&authority, "gateway").await;
    let client = client(&authority, &[&impostor, &elsewhere, &genuine]);
    client.create(&namespace()).await.unwrap();
    assert!(!genuine.users.lock().is_empty());
    assert!(impostor.users.lock().is_empty() && elsewhere.users.lock().is_empty());
}

#[tokio::test]
async fn an_address_of_tls_needs_a_certificate() {
    let settings = client::Settings {
        address: "https://127.0.0.1:1".to_owned(),
        ..client::Settings::default()
    };
    let refused = Client::connect(&settings, "test").unwrap_err().to_string();
    assert!(refused.contains("needs a certificate"), "{refused}");
}
