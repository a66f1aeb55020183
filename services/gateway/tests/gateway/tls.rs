//! The API over real connections of TLS: what the handshake says reaches the users of requests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use setpoint_gateway::registry::Registry;
use setpoint_gateway::{AuthorizationMode, DialPolicy, in_process};
use setpoint_host::serve::{Limits, bind, serve_with};
use setpoint_proto::setpoint::ListRequest;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::Memory;
use setpoint_store::cache::Settings;
use setpoint_tls::Credentials;
use setpoint_tls::authority::{Authority, Leaf, Usage};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::http::api::{Api, Reply};

/// The time after which Events expire: longer than any test.
const HOUR: Duration = Duration::from_secs(3600);

/// A gateway that speaks TLS only.
pub struct Gateway {
    authority: Authority,
    own: Credentials,
    registry: Arc<Registry>,
    pub address: SocketAddr,
    _stop: DropGuard,
}

impl Gateway {
    /// Starts a gateway in the mode RBAC.
    async fn start() -> Self {
        Self::with_modes(&[AuthorizationMode::Rbac]).await
    }

    /// Starts a gateway in these modes.
    pub async fn with_modes(modes: &[AuthorizationMode]) -> Self {
        let authority = Authority::create("setpoint-ca").unwrap();
        let with = |registry: Registry| registry.with_authorization(modes);
        let store = Arc::new(Memory::default());
        let registry = in_process::registry_with(store, Settings::default(), with).await;
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let own = issue(&authority, "system:setpoint:gateway", &[]);
        let router = in_process::router(registry.clone());
        let limits = Limits::default();
        let serving = serve_with(Some(own.clone()), listener, router, limits, stop.clone());
        tokio::spawn(serving);
        Self {
            authority,
            own,
            registry,
            address,
            _stop: stop.drop_guard(),
        }
    }

    /// Runs the background tasks until the guard is dropped.
    pub fn run_background(&self) -> DropGuard {
        let stop = CancellationToken::new();
        let registry = self.registry.clone();
        tokio::spawn(registry.run_background(HOUR, stop.clone(), |_| |_| ()));
        stop.drop_guard()
    }

    /// Returns the settings of a client without a certificate, for HTTP/2.
    pub fn anonymous(&self) -> Arc<ClientConfig> {
        let mut client = without_certificate(self);
        client.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(client)
    }

    /// Returns the settings of a client whose certificate is by the CA of the gateway.
    pub fn client(&self, name: &str, groups: &[&str]) -> Credentials {
        issue(&self.authority, name, groups)
    }

    /// Returns the settings of a client whose certificate is by another CA.
    fn foreign_client(&self, name: &str, groups: &[&str]) -> Credentials {
        let other = Authority::create("other-ca").unwrap();
        let issued = other.issue(&leaf(name, groups)).unwrap();
        let ca = self.authority.certificate();
        Credentials::from_pem(ca, &issued.certificate, &issued.key).unwrap()
    }

    /// Returns the code and the text of a response over HTTP/1.1.
    async fn get(&self, client: Arc<ClientConfig>, path: &str) -> (u16, String) {
        let mut stream = connect(self.address, client).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        let code = reply.split(' ').nth(1).unwrap().parse().unwrap();
        (code, reply)
    }

    /// Lists namespaces over gRPC.
    async fn list(&self, client: Arc<ClientConfig>) -> Result<(), ApiError> {
        let request = ListRequest {
            resource: "namespaces".into(),
            ..ListRequest::default()
        };
        let mut objects = ObjectsClient::new(channel(self.address, client).await);
        let listed = objects.list(request).await;
        listed.map(|_| ()).map_err(ApiError::from)
    }
}

fn leaf(name: &str, groups: &[&str]) -> Leaf {
    Leaf {
        name: name.into(),
        groups: groups.iter().map(ToString::to_string).collect(),
        hosts: vec!["127.0.0.1".into()],
        usage: Usage::ServerAndClient,
        lifetime: Duration::from_secs(3600),
    }
}

fn issue(authority: &Authority, name: &str, groups: &[&str]) -> Credentials {
    let issued = authority.issue(&leaf(name, groups)).unwrap();
    issued.credentials().unwrap()
}

/// Returns the settings without a certificate.
fn without_certificate(gateway: &Gateway) -> ClientConfig {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    let ca = gateway.authority.certificate().as_bytes();
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(ca).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

async fn connect(
    address: SocketAddr,
    client: Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::from(address.ip());
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(client).connect(name, stream).await
}

pub async fn channel(address: SocketAddr, client: Arc<ClientConfig>) -> Channel {
    let connector = service_fn(move |_| {
        let client = client.clone();
        async move { connect(address, client).await.map(TokioIo::new) }
    });
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    endpoint.connect_with_connector(connector).await.unwrap()
}

#[tokio::test]
async fn the_certificate_of_a_connection_says_whose_its_requests_are() {
    let gateway = Gateway::start().await;
    let master = gateway.client("root", &["system:masters"]);
    let (code, reply) = gateway
        .get(master.http1_client(), "/api/v1/namespaces")
        .await;
    assert_eq!(code, 200, "{reply}");
    gateway.list(master.client()).await.unwrap();
    let jane = gateway.client("jane", &[]);
    let (code, reply) = gateway.get(jane.http1_client(), "/api/v1/namespaces").await;
    assert_eq!(code, 403);
    assert!(
        reply.contains(r#"User \"jane\" cannot list resource \"namespaces\""#),
        "{reply}"
    );
    let refused = gateway.list(jane.client()).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Forbidden);
    assert!(
        refused.message.contains("User \"jane\" cannot list"),
        "{}",
        refused.message
    );
}

#[tokio::test]
async fn a_client_without_a_certificate_is_anonymous_over_tls() {
    let gateway = Gateway::start().await;
    let nobody = without_certificate(&gateway);
    let (code, reply) = gateway.get(Arc::new(nobody), "/api/v1/namespaces").await;
    assert_eq!(code, 403);
    assert!(
        reply.contains(r#"User \"system:anonymous\" cannot list"#),
        "{reply}"
    );
    let refused = gateway.list(gateway.anonymous()).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Forbidden);
    assert!(
        refused.message.contains("\"system:anonymous\""),
        "{}",
        refused.message
    );
}

#[tokio::test]
async fn a_certificate_of_another_ca_is_unauthorized() {
    let gateway = Gateway::start().await;
    let foreign = gateway.foreign_client("root", &["system:masters"]);
    let (code, reply) = gateway.get(foreign.http1_client(), "/version").await;
    assert_eq!(code, 401, "{reply}");
    let refused = gateway.list(foreign.client()).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Unauthorized);
}

/// Returns the credentials of a node whose certificate names this UID.
fn node(gateway: &Gateway, name: &str, uid: &str) -> Credentials {
    let (ca, key) = (gateway.authority.certificate(), gateway.authority.key());
    let key = rcgen::KeyPair::from_pem(&key).unwrap();
    let mut of_ca = rcgen::CertificateParams::default();
    let name_of_ca = &mut of_ca.distinguished_name;
    name_of_ca.push(rcgen::DnType::CommonName, "setpoint-ca");
    let issuer = rcgen::Issuer::from_params(&of_ca, key);
    let mut params = rcgen::CertificateParams::default();
    let subject = &mut params.distinguished_name;
    subject.push(rcgen::DnType::OrganizationName, "system:nodes");
    subject.push(rcgen::DnType::CommonName, format!("system:node:{name}"));
    let user_id = rcgen::DnType::CustomDnType(setpoint_tls::USER_ID.to_vec());
    subject.push(user_id, uid);
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let own = rcgen::KeyPair::generate().unwrap();
    let certificate = params.signed_by(&own, &issuer).unwrap().pem();
    Credentials::from_pem(ca, &certificate, &own.serialize_pem()).unwrap()
}

/// Deletes a Node and checks that a watch of its node ends, which has begun before, and that further requests of it are
/// unauthorized.
#[tokio::test]
async fn the_streams_of_a_node_end_with_its_node() {
    let gateway = Gateway::with_modes(&[AuthorizationMode::Node, AuthorizationMode::Rbac]).await;
    let _background = gateway.run_background();
    let master = gateway.client("root", &["system:masters"]).client();
    let mut nodes = ObjectsClient::new(channel(gateway.address, master).await);
    let object = setpoint_proto::core::Node {
        metadata: setpoint_proto::meta::ObjectMeta {
            name: "a".into(),
            ..Default::default()
        },
        ..Default::default()
    };
    let create = setpoint_proto::setpoint::CreateRequest {
        resource: "nodes".into(),
        object: Some(setpoint_proto::Any::pack(&object)),
        ..Default::default()
    };
    let created = nodes.create(create).await.unwrap().into_inner();
    let created = created.object.unwrap();
    let created: setpoint_proto::core::Node = prost::Message::decode(created.value).unwrap();
    let own = node(&gateway, "a", &created.metadata.uid);
    let mut of_node = ObjectsClient::new(channel(gateway.address, own.client()).await);
    let watch = setpoint_proto::setpoint::WatchRequest {
        resource: "nodes".into(),
        field_selector: "metadata.name=a".into(),
        ..Default::default()
    };
    let mut events = of_node.watch(watch).await.unwrap().into_inner();
    let delete = setpoint_proto::setpoint::DeleteRequest {
        resource: "nodes".into(),
        name: "a".into(),
        ..Default::default()
    };
    nodes.delete(delete).await.unwrap();
    let ended = async { while let Ok(Some(_)) = events.message().await {} };
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, ended)
        .await
        .expect("the watch ends");
    let (code, reply) = gateway.get(own.http1_client(), "/version").await;
    assert_eq!(code, 401, "{reply}");
}

/// A gateway that starts knows the CA of signers a moment later than it answers. A client that has connected before
/// does not stay unauthorized for as long as its connection lasts: it has to connect again.
#[tokio::test]
async fn a_connection_from_before_its_ca_was_known_ends_when_it_is() {
    let gateway = Gateway::start().await;
    let other = Authority::create("other-ca").unwrap();
    let issued = other.issue(&leaf("root", &["system:masters"])).unwrap();
    let ca = gateway.authority.certificate();
    let client = Credentials::from_pem(ca, &issued.certificate, &issued.key).unwrap();
    let mut early = connect(gateway.address, client.http1_client())
        .await
        .unwrap();
    let request = b"GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    early.write_all(request).await.unwrap();
    let mut line = [0; 12];
    early.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"HTTP/1.1 401");
    gateway
        .own
        .also_know_clients_by(other.certificate())
        .unwrap();
    let mut rest = Vec::new();
    let limit = Duration::from_secs(30);
    let ended = tokio::time::timeout(limit, early.read_to_end(&mut rest)).await;
    ended.expect("the connection ends").unwrap();
    let (code, reply) = gateway.get(client.http1_client(), "/version").await;
    assert_eq!(code, 200, "{reply}");
}

/// Servers behind the gateway, and controllers, know clients as it does.
#[tokio::test]
async fn the_cas_of_clients_are_published_and_follow_its_own() {
    let authority = Authority::create("setpoint-ca").unwrap();
    let other = Authority::create("other-ca").unwrap();
    let own = issue(&authority, "system:setpoint:gateway", &[]);
    let policy = DialPolicy::default().with_credentials(Some(own.clone()));
    let with = |registry: Registry| registry.with_dial_policy(policy);
    let store = Arc::new(Memory::default());
    let api = Api::of(in_process::registry_with(store, Settings::default(), with).await);
    let _background = api.run_background();
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let until = async |bundle: &str| {
        let is_published = |reply: &Reply| reply.json()["data"]["client-ca-file"] == bundle;
        api.eventually(path, is_published).await;
    };
    let both = [authority.certificate(), other.certificate()].concat();
    until(authority.certificate()).await;
    for (further, published) in [
        (other.certificate(), both.as_str()),
        ("", authority.certificate()),
        (authority.certificate(), authority.certificate()),
    ] {
        own.also_know_clients_by(further).unwrap();
        until(published).await;
    }
    api.delete(path).await.ok();
    until(authority.certificate()).await;
}
