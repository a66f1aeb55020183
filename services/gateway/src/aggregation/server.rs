//! The connections to one API server.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, RwLock};
use rustls::ClientConfig;
use setpoint_store::cache::Cache;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::timeout::error::Elapsed;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder};

use super::front_proxy::Certificate;
use super::{Documents, Gateway};
use crate::dial_policy::DialPolicy;
use crate::outbound::{self, Dialer, ServiceAddress, Trust, cause};

/// The number of requests to one server that may be in flight, watches included. Further ones are refused.
const IN_FLIGHT: usize = 1024;
/// The time in which a connection must be ready for requests.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of idle connections.
const MAX_IDLE: usize = 16;

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;
type Connector = BoxCloneSyncService<Uri, Stream, BoxError>;
type Http = legacy::Client<Connector, Body>;

/// The reason why there is no response.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// The settings of TLS cannot be used.
    #[error("{0}")]
    Tls(String),
    /// The server was not reached, or broke the connection.
    #[error("{0}")]
    Call(String),
}

/// The address of a server, and the certificates that it is verified by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) address: ServiceAddress,
    /// The CA bundle in PEM; `None` if the server is not verified.
    pub(super) ca_bundle: Option<Bytes>,
}

/// An API server. Its requests have one connection each, by HTTP/1.1, so that any of them can be upgraded; idle ones
/// are used again.
pub(crate) struct Server {
    endpoint: Endpoint,
    cache: Cache,
    policy: DialPolicy,
    clients: Mutex<Option<Arc<Clients>>>,
    in_flight: Arc<Semaphore>,
    documents: RwLock<Arc<Documents>>,
}

/// The clients with one certificate of the front proxy.
struct Clients {
    certificate: Arc<Certificate>,
    /// As the APIService says.
    trusting: Result<Http, String>,
    /// Without verification and with a new connection for each request.
    probing: Result<Http, String>,
}

impl Server {
    pub(super) fn new(endpoint: Endpoint, gateway: &dyn Gateway) -> Self {
        Self {
            endpoint,
            cache: gateway.cache().clone(),
            policy: gateway.dial_policy().clone(),
            clients: Mutex::default(),
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT)),
            documents: RwLock::default(),
        }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the port of the Service.
    pub(crate) fn address(&self) -> &ServiceAddress {
        &self.endpoint.address
    }

    /// Returns the URL of a path with its query.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.endpoint.address.host())
    }

    /// Returns the right to one request; `None` if too many are in flight.
    pub(crate) fn admit(&self) -> Option<OwnedSemaphorePermit> {
        self.in_flight.clone().try_acquire_owned().ok()
    }

    /// Returns the documents that were fetched last.
    pub(crate) fn documents(&self) -> Arc<Documents> {
        self.documents.read().clone()
    }

    pub(super) fn set_documents(&self, documents: Documents) {
        *self.documents.write() = Arc::new(documents);
    }

    /// Sends a request with an absolute URL, and verifies the server as the APIService says.
    ///
    /// # Errors
    /// If there is no response.
    pub(crate) async fn send(
        &self,
        certificate: Arc<Certificate>,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Error> {
        send(&self.clients(certificate).trusting, request).await
    }

    /// Sends a request by a new connection, without verification of the server.
    ///
    /// # Errors
    /// If there is no response.
    pub(crate) async fn probe(
        &self,
        certificate: Arc<Certificate>,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Error> {
        send(&self.clients(certificate).probing, request).await
    }

    /// Returns the clients with a certificate. They are made again when it has changed.
    fn clients(&self, certificate: Arc<Certificate>) -> Arc<Clients> {
        let mut clients = self.clients.lock();
        let known = clients.as_ref();
        match known.filter(|known| Arc::ptr_eq(&known.certificate, &certificate)) {
            Some(known) => known.clone(),
            None => clients
                .insert(Arc::new(self.connect_with(certificate)))
                .clone(),
        }
    }

    fn connect_with(&self, certificate: Arc<Certificate>) -> Clients {
        let Endpoint { address, ca_bundle } = &self.endpoint;
        let (cache, policy) = (self.cache.clone(), self.policy.clone());
        let verified = Dialer::new(Some(address.clone()), cache.clone(), policy.clone());
        let unverified = Dialer::private(address.clone(), cache, policy);
        let (trust, dialer) = match ca_bundle {
            Some(bundle) => (Trust::Bundle(bundle), verified.clone()),
            None => (Trust::Any, unverified),
        };
        let tls = |trust| outbound::tls(trust, Some(&certificate.client));
        Clients {
            trusting: tls(trust).map(|tls| http(tls, dialer, MAX_IDLE)),
            probing: tls(Trust::Any).map(|tls| http(tls, verified, 0)),
            certificate,
        }
    }
}

fn http(tls: ClientConfig, dialer: Dialer, max_idle: usize) -> Http {
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .enable_http1()
        .wrap_connector(dialer);
    let bounded = ServiceBuilder::new()
        .map_err(timed_out)
        .timeout(CONNECT_TIMEOUT)
        .service(https);
    outbound::pool()
        .pool_max_idle_per_host(max_idle)
        .build(BoxCloneSyncService::new(bounded))
}

/// Words a connection that was not ready in time as Go does.
fn timed_out(error: BoxError) -> BoxError {
    match error.is::<Elapsed>() {
        true => io::Error::other("dial tcp: i/o timeout").into(),
        false => error,
    }
}

async fn send(
    http: &Result<Http, String>,
    request: Request<Body>,
) -> Result<Response<Incoming>, Error> {
    let http = http
        .as_ref()
        .map_err(|why| Error::Tls(format!("unable to load root certificates: {why}")))?;
    let response = http.request(request).await;
    response.map_err(|error| Error::Call(cause(&error as &(dyn StdError + 'static))))
}
