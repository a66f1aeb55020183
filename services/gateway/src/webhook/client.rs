//! The client of one webhook.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use setpoint_store::cache::Cache;
use tokio::time::timeout;

use super::Config;
use super::error::Error;
use crate::dial_policy::DialPolicy;
use crate::outbound::{Calls, Dialer, Trust, cause, pool, tls};

/// The maximum number of idle connections.
const MAX_IDLE: usize = 4;
/// The size in bytes that a response may always have. A response to a longer request may be [`GROWTH`] times as long.
const RESPONSE_MAX: usize = 16 << 20;
const GROWTH: usize = 4;
const JSON: &str = "application/json";

type Http = legacy::Client<HttpsConnector<Dialer>, Full<Bytes>>;

/// The client of a webhook.
pub(crate) struct Client {
    config: Config,
    http: Http,
    calls: Calls,
}

impl Client {
    pub(super) fn new(config: Config, cache: Cache, policy: DialPolicy) -> Result<Self, Error> {
        let tls = tls(Trust::Bundle(&config.ca_bundle), None).map_err(Error::Roots)?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .enable_http2()
            .wrap_connector(Dialer::new(config.service().cloned(), cache, policy));
        let http = pool().pool_max_idle_per_host(MAX_IDLE).build(connector);
        Ok(Self {
            config,
            http,
            calls: Calls::default(),
        })
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Posts JSON. Returns the body of the response.
    ///
    /// # Errors
    /// If there is no successful response within `limit`.
    pub(crate) async fn post(&self, json: Bytes, limit: Duration) -> Result<Bytes, Error> {
        let url = self.config.url(limit.as_secs().max(1))?;
        let failed = |cause: String| Error::Call {
            url: url.to_string(),
            cause,
        };
        match timeout(limit, self.call(&url, json)).await {
            Ok(Ok(response)) => response,
            Ok(Err(cause)) => Err(failed(cause)),
            Err(_) => Err(failed("context deadline exceeded".to_owned())),
        }
    }

    /// Sends a request. The outer error is the cause why there is no response.
    async fn call(&self, url: &Uri, json: Bytes) -> Result<Result<Bytes, Error>, String> {
        let _call = self.calls.begin().await?;
        let max = RESPONSE_MAX.max(json.len().saturating_mul(GROWTH));
        let request = Request::post(url)
            .header(CONTENT_TYPE, JSON)
            .header(ACCEPT, JSON)
            .header(USER_AGENT, "setpoint-gateway")
            .body(Full::new(json))
            .map_err(|error| cause(&error))?;
        let response = self.http.request(request).await;
        let (head, body) = response.map_err(|error| cause(&error))?.into_parts();
        let body = Limited::new(body, max).collect().await;
        let body = body.map_err(|error| match error.is::<LengthLimitError>() {
            true => format!("the response is larger than {max} bytes"),
            false => cause(&*error),
        })?;
        let body = body.to_bytes();
        Ok(match head.status.is_success() {
            true => Ok(body),
            false => Err(Error::refused(head.status, &body)),
        })
    }
}
