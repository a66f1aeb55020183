//! Fetches the documents of an issuer.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, USER_AGENT};
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use serde::Deserialize;
use setpoint_apiserver_config::authentication::Issuer;
use tokio::time::timeout;

use crate::metrics::hashed;
use crate::outbound::{NamedClient, Trust, cause, named_client, tls};
use crate::request::jwt::WebKey;

/// The time in which all documents must be there.
const LIMIT: Duration = Duration::from_secs(10);
/// The largest size of a document in bytes.
const LARGEST: usize = 1 << 20;
/// The path of the discovery document below the URL of an issuer.
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// The documents of an issuer. Redirects are not followed.
pub(super) struct Provider {
    issuer: String,
    discovery: String,
    http: NamedClient,
    /// The URL of the key set, once it is known.
    key_set: Option<String>,
}

/// A set of keys.
pub(super) struct KeySet {
    pub(super) keys: Vec<WebKey>,
    /// The hash of its document.
    pub(super) hash: String,
}

/// The discovery document.
#[derive(Deserialize)]
struct Configuration {
    issuer: String,
    jwks_uri: String,
}

impl Provider {
    /// Returns the documents of an issuer.
    ///
    /// # Errors
    /// If TLS to it cannot be set up.
    pub(super) fn new(issuer: &Issuer) -> Result<Self, String> {
        let trust = Trust::Bundle(issuer.certificate_authority.as_bytes());
        let discovery = match issuer.discovery_url.as_str() {
            "" => format!("{}{DISCOVERY}", issuer.url.trim_end_matches('/')),
            url => url.to_owned(),
        };
        Ok(Self {
            issuer: issuer.url.clone(),
            discovery,
            http: named_client(tls(trust, None)?),
            key_set: None,
        })
    }

    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Fetches the keys. The discovery document is fetched before them for the first time, and after a failure.
    ///
    /// # Errors
    /// If a document is not there in time, or is malformed.
    pub(super) async fn keys(&mut self) -> Result<KeySet, String> {
        let known = self.key_set.take();
        let fetched = timeout(LIMIT, async {
            let url = match known {
                Some(url) => url,
                None => self.discover().await?,
            };
            let document = self.get(&url).await?;
            let keys = WebKey::read_set(&document);
            let keys = keys.map_err(|why| format!("get {url:?}: {why}"))?;
            let hash = hashed(&document);
            Ok((url, KeySet { keys, hash }))
        });
        let fetched = fetched.await;
        let fetched = fetched.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
        let (url, keys) = fetched?;
        self.key_set = Some(url);
        Ok(keys)
    }

    /// Returns the URL of the key set.
    async fn discover(&self) -> Result<String, String> {
        let document = self.get(&self.discovery).await?;
        let found: Configuration = serde_json::from_slice(&document)
            .map_err(|error| format!("get {:?}: {error}", self.discovery))?;
        match found.issuer == self.issuer {
            true if found.jwks_uri.starts_with("https://") => Ok(found.jwks_uri),
            true => Err(format!("the key set {:?} is not of HTTPS", found.jwks_uri)),
            false => Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected {:?} got {:?}",
                self.issuer, found.issuer
            )),
        }
    }

    async fn get(&self, url: &str) -> Result<Bytes, String> {
        let failed = |why: String| format!("get {url:?}: {why}");
        let uri: Uri = url.parse().map_err(|error| failed(format!("{error}")))?;
        let request = Request::get(uri)
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, "setpoint-gateway")
            .body(Full::default())
            .map_err(|error| failed(error.to_string()))?;
        let response = self.http.request(request).await;
        let response = response.map_err(|error| failed(cause(&error)))?;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            return Err(failed(head.status.to_string()));
        }
        let body = Limited::new(body, LARGEST).collect().await;
        Ok(body.map_err(|error| failed(cause(&*error)))?.to_bytes())
    }
}
