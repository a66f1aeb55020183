//! The server that lists of events are sent to.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use setpoint_audit::Post;
use tokio::time::timeout;

use super::kubeconfig::{Kubeconfig, Token};
use crate::outbound::{ClientCertificate, Trust, cause, pool, tls};

/// The time in which the server has to answer, as upstream.
const LIMIT: Duration = Duration::from_secs(30);
/// The largest size of an answer in bytes, of which nothing is read but that it ends.
const ANSWER_MAX: usize = 1 << 20;

/// A server. Whom it is, the administrator says: the rules for addresses that objects name do not apply.
pub(super) struct Server {
    url: Uri,
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    token: Token,
}

impl Server {
    /// Returns the server that a kubeconfig file names.
    ///
    /// # Errors
    /// If the file cannot be read or is not valid.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let config = Kubeconfig::read(path)?;
        let url = config.server.parse();
        let url = url.map_err(|error| format!("cluster.server: {error}"))?;
        let client = config.identity.as_ref().map(|(certificate, key)| {
            let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>();
            let chain = chain.map_err(|error| format!("user.client-certificate: {error}"))?;
            let key = PrivateKeyDer::from_pem_slice(key);
            let key = key.map_err(|error| format!("user.client-key: {error}"))?;
            Ok::<_, String>(ClientCertificate { chain, key })
        });
        let client = client.transpose()?;
        let trust = match config.is_insecure {
            true => Trust::Any,
            false => Trust::Bundle(&config.ca),
        };
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(trust, client.as_ref())?)
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(tcp);
        let http = pool().build(connector);
        Ok(Self {
            url,
            http,
            token: config.token,
        })
    }

    async fn call(&self, json: Bytes) -> Result<(), String> {
        let mut request = Request::post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, "setpoint-gateway");
        if let Some(value) = self.token.header().await? {
            request = request.header(AUTHORIZATION, value);
        }
        let request = request.body(Full::new(json));
        let request = request.map_err(|error| error.to_string())?;
        let response = self.http.request(request).await;
        let (head, body) = response.map_err(|error| cause(&error))?.into_parts();
        // The connection can be used again only when the answer was read.
        let _ = Limited::new(body, ANSWER_MAX).collect().await;
        match head.status.is_success() {
            true => Ok(()),
            false => Err(format!("the server has answered {}", head.status)),
        }
    }
}

impl Post for Server {
    async fn post(&self, json: Bytes) -> Result<(), String> {
        let called = timeout(LIMIT, self.call(json)).await;
        called.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()))
    }
}

impl Token {
    /// Returns the value of `Authorization`.
    async fn header(&self) -> Result<Option<String>, String> {
        Ok(match self {
            Self::None => None,
            Self::Text(token) => Some(format!("Bearer {token}")),
            Self::File(path) => {
                let token = tokio::fs::read_to_string(path).await;
                let token =
                    token.map_err(|error| format!("reading {}: {error}", path.display()))?;
                Some(format!("Bearer {}", token.trim()))
            }
            Self::Password(name, password) => {
                let pair = BASE64_STANDARD.encode(format!("{name}:{password}"));
                Some(format!("Basic {pair}"))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use axum::Router;
    use axum::body::Bytes as Received;
    use axum::http::{HeaderMap, StatusCode};
    use axum::routing::post;
    use parking_lot::Mutex;
    use tokio::net::TcpListener;

    use super::*;

    /// The credentials and the bodies of the requests to a server.
    type Requests = Arc<Mutex<Vec<(String, Received)>>>;

    async fn server_answering(code: u16) -> (Server, Requests, tempfile::TempDir) {
        let requests = Requests::default();
        let seen = requests.clone();
        let answer = move |headers: HeaderMap, body: Received| {
            let credentials = headers[AUTHORIZATION].to_str().unwrap().to_owned();
            seen.lock().push((credentials, body));
            async move { StatusCode::from_u16(code).unwrap() }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = tokio_util::sync::CancellationToken::new();
        let router = Router::new().route("/events", post(answer));
        let limits = setpoint_host::serve::Limits::default();
        tokio::spawn(setpoint_host::serve::serve(listener, router, limits, stop));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("webhook.yaml");
        fs::write(directory.path().join("token"), "of-a-file\n").unwrap();
        let text = format!(
            "current-context: c
contexts: [{{name: c, context: {{cluster: a, user: u}}}}]
clusters: [{{name: a, cluster: {{server: 'http://{address}/events'}}}}]
users: [{{name: u, user: {{tokenFile: token}}}}]
"
        );
        fs::write(&file, text).unwrap();
        (Server::read(&file).unwrap(), requests, directory)
    }

    #[tokio::test]
    async fn a_list_is_posted_with_the_credentials() {
        let (server, requests, _directory) = server_answering(200).await;
        assert_eq!(server.post("{}".into()).await, Ok(()));
        let found = requests.lock().clone();
        assert_eq!(
            found,
            [("Bearer of-a-file".to_owned(), Received::from("{}"))]
        );
    }

    #[tokio::test]
    async fn an_answer_that_is_no_success_is_an_error() {
        let (server, _requests, _directory) = server_answering(503).await;
        let error = server.post("{}".into()).await.unwrap_err();
        assert_eq!(error, "the server has answered 503 Service Unavailable");
    }
}
