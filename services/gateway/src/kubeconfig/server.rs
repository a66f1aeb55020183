//! Calls the server that a kubeconfig file names.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::time::timeout;

use super::file::{Kubeconfig, Token};
use crate::outbound::{Calls, ClientCertificate, NamedClient, Trust, cause, named_client, tls};

/// The largest size of an answer in bytes.
const ANSWER_MAX: usize = 1 << 20;
const JSON: &str = "application/json";

/// A server. The administrator names it: the rules for addresses that objects name do not apply.
pub(crate) struct Server {
    url: Uri,
    http: NamedClient,
    token: Token,
    calls: Calls,
}

/// An answer that was received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// The reason why there is no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("context deadline exceeded")]
    Timeout,
    /// The server was not asked, since too many calls of it are in flight.
    #[error("{0}")]
    Busy(String),
    #[error("{0}")]
    Other(String),
}

impl Server {
    /// Returns the server that a kubeconfig file names.
    ///
    /// # Errors
    /// If the file cannot be read or is not valid.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
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
        Ok(Self {
            url,
            http: named_client(tls(trust, client.as_ref())?),
            token: config.token,
            calls: Calls::default(),
        })
    }

    /// Posts JSON, and returns the answer.
    ///
    /// # Errors
    /// If the call may not begin within `limit`, or there is no answer within it then.
    pub(crate) async fn post(&self, json: Bytes, limit: Duration) -> Result<Answer, Failure> {
        let _call = match timeout(limit, self.calls.begin()).await {
            Ok(begun) => begun.map_err(Failure::Busy)?,
            Err(_) => {
                return Err(Failure::Busy(
                    "the webhook has too many calls in flight".into(),
                ));
            }
        };
        match timeout(limit, self.call(json)).await {
            Ok(called) => called.map_err(Failure::Other),
            Err(_) => Err(Failure::Timeout),
        }
    }

    async fn call(&self, json: Bytes) -> Result<Answer, String> {
        let mut request = Request::post(&self.url)
            .header(CONTENT_TYPE, JSON)
            .header(ACCEPT, JSON)
            .header(USER_AGENT, "setpoint-gateway");
        if let Some(value) = self.token.header().await? {
            request = request.header(AUTHORIZATION, value);
        }
        let request = request.body(Full::new(json));
        let request = request.map_err(|error| error.to_string())?;
        let response = self.http.request(request).await;
        let (head, body) = response.map_err(|error| cause(&error))?.into_parts();
        // The connection can be used again only when the answer was read.
        let body = Limited::new(body, ANSWER_MAX).collect().await;
        let body = body.map_err(|error| cause(&*error))?.to_bytes();
        let status = head.status;
        Ok(Answer { status, body })
    }
}

impl Answer {
    /// Returns the body of an answer that says that the server has done what was asked.
    ///
    /// # Errors
    /// If it says something else. The body is not told: the server may be any.
    pub(crate) fn of_success(self) -> Result<Bytes, String> {
        match self.status.is_success() {
            true => Ok(self.body),
            false => Err(format!("the server has answered {}", self.status)),
        }
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

    const LIMIT: Duration = Duration::from_secs(30);

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
        let answer = server.post("{}".into(), LIMIT).await.unwrap();
        assert_eq!(answer.of_success(), Ok(Bytes::new()));
        let found = requests.lock().clone();
        assert_eq!(
            found,
            [("Bearer of-a-file".to_owned(), Received::from("{}"))]
        );
    }

    #[tokio::test]
    async fn an_answer_that_is_no_success_is_an_error() {
        let (server, _requests, _directory) = server_answering(503).await;
        let answer = server.post("{}".into(), LIMIT).await.unwrap();
        let error = answer.of_success().unwrap_err();
        assert_eq!(error, "the server has answered 503 Service Unavailable");
    }
}
