//! Requests to the gateway that a process joins by. The client has no certificate.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use axum::http::{Request, Uri};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::Value;
use setpoint_host::http_client::{self, Answer};
use setpoint_host::unverified_tls;
use setpoint_tls::{ClientStream, Pinned};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::token::Token;

/// The time limit of connecting, and of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer that is read.
const MAX_BYTES: usize = 1 << 20;
const HTTPS_PORT: u16 = 443;

/// The address of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    host: String,
    port: u16,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// There is no answer from the address now.
    Unreachable(anyhow::Error),
    /// The server has no certificate by a CA that is trusted.
    Untrusted(anyhow::Error),
}

impl Gateway {
    /// Reads a URL of the scheme `https`, or a host and a port.
    ///
    /// # Errors
    /// If it is another one, or has more parts.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let url = match text.contains("://") {
            true => text.to_owned(),
            false => format!("https://{text}"),
        };
        let uri: Uri = url.parse()?;
        if uri.scheme_str() != Some("https") {
            bail!("processes join over TLS only: the scheme must be https");
        }
        if !["", "/"].contains(&uri.path()) || uri.query().is_some() {
            bail!("it must be a host and a port, without a path");
        }
        let host = uri.host().filter(|host| !host.is_empty());
        Ok(Self {
            host: host.context("it has no host")?.to_owned(),
            port: uri.port_u16().unwrap_or(HTTPS_PORT),
        })
    }

    /// Returns the URL.
    pub fn url(&self) -> String {
        format!("https://{self}")
    }

    /// Returns the host and the port, as they are connected to.
    pub fn place(&self) -> (&str, u16) {
        (self.host.trim_matches(['[', ']']), self.port)
    }

    /// Reads a path anonymously, from whoever answers: its certificate is not verified.
    pub async fn get_unverified(&self, path: &str) -> Result<Answer, Failure> {
        let stream = self.connect().await?;
        let host = self.host.trim_matches(['[', ']']);
        let stream = timeout(TIMEOUT, unverified_tls::connect(host, stream)).await;
        let stream = stream
            .context("it does not answer")
            .map_err(Failure::Unreachable)?;
        let stream = stream.map_err(|error| Failure::Unreachable(anyhow::Error::msg(error)))?;
        let request = self.request(Request::get(path), "")?;
        within(http_client::send_on(stream, request, MAX_BYTES)).await
    }

    /// Reads a path anonymously from a server with a certificate by one of these CAs.
    pub async fn get(&self, authorities: &Pinned, path: &str) -> Result<Answer, Failure> {
        self.send(authorities, Request::get(path), "").await
    }

    /// Reads a path as the user of a token, from a server with a certificate by one of these CAs.
    pub async fn get_as(
        &self,
        authorities: &Pinned,
        token: &Token,
        path: &str,
    ) -> Result<Answer, Failure> {
        let request = Request::get(path).header(AUTHORIZATION, bearer(token));
        self.send(authorities, request, "").await
    }

    /// Deletes the object of a path as the user of a token, from a server with a certificate by one of these CAs.
    pub async fn delete_as(
        &self,
        authorities: &Pinned,
        token: &Token,
        path: &str,
    ) -> Result<Answer, Failure> {
        let request = Request::delete(path).header(AUTHORIZATION, bearer(token));
        self.send(authorities, request, "").await
    }

    /// Posts an object as the user of a token, to a server with a certificate by one of these CAs.
    pub async fn post(
        &self,
        authorities: &Pinned,
        token: &Token,
        path: &str,
        object: &Value,
    ) -> Result<Answer, Failure> {
        let request = Request::post(path).header(AUTHORIZATION, bearer(token));
        self.send(authorities, request, &object.to_string()).await
    }

    async fn send(
        &self,
        authorities: &Pinned,
        request: axum::http::request::Builder,
        body: &str,
    ) -> Result<Answer, Failure> {
        let config = authorities.client();
        let config = config.map_err(|error| Failure::Untrusted(error.into()))?;
        let stream = self.handshake(config).await?;
        within(http_client::send_on(
            stream,
            self.request(request, body)?,
            MAX_BYTES,
        ))
        .await
    }

    async fn connect(&self) -> Result<TcpStream, Failure> {
        let connected = timeout(TIMEOUT, TcpStream::connect(self.place())).await;
        let connected = connected
            .context("it does not answer")
            .map_err(Failure::Unreachable)?;
        connected.map_err(|error| Failure::Unreachable(error.into()))
    }

    async fn handshake(
        &self,
        config: Arc<ClientConfig>,
    ) -> Result<ClientStream<TcpStream>, Failure> {
        let name = ServerName::try_from(self.host.trim_matches(['[', ']']).to_owned());
        let name = name.map_err(|error| Failure::Untrusted(error.into()))?;
        let stream = self.connect().await?;
        let secured = timeout(TIMEOUT, ClientStream::handshake(config, name, stream)).await;
        let secured = secured
            .context("it does not answer")
            .map_err(Failure::Unreachable)?;
        secured.map_err(|error| {
            let is_verdict = error
                .get_ref()
                .is_some_and(|inner| inner.is::<rustls::Error>());
            match is_verdict {
                true => Failure::Untrusted(error.into()),
                false => Failure::Unreachable(error.into()),
            }
        })
    }

    fn request(
        &self,
        request: axum::http::request::Builder,
        body: &str,
    ) -> Result<Request<Body>, Failure> {
        let request = request.header(HOST, self.to_string());
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(body.to_owned()));
        request.map_err(|error| Failure::Unreachable(error.into()))
    }
}

fn bearer(token: &Token) -> String {
    format!("Bearer {}", token.text())
}

/// As in the header `Host`.
impl fmt::Display for Gateway {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

async fn within(answer: impl Future<Output = anyhow::Result<Answer>>) -> Result<Answer, Failure> {
    let answer = timeout(TIMEOUT, answer).await;
    let answer = answer
        .context("it does not answer")
        .map_err(Failure::Unreachable)?;
    answer.map_err(Failure::Unreachable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_a_host_and_a_port() {
        for (text, url) in [
            ("https://10.0.0.1:6443", "https://10.0.0.1:6443"),
            ("https://api.example.com/", "https://api.example.com:443"),
            ("10.0.0.1:6443", "https://10.0.0.1:6443"),
            ("https://[::1]:6443", "https://[::1]:6443"),
        ] {
            assert_eq!(Gateway::parse(text).unwrap().url(), url);
        }
        for text in [
            "",
            "http://10.0.0.1:6443",
            "https://",
            "https://a/b",
            "https://a?b",
            "a b",
        ] {
            assert!(Gateway::parse(text).is_err(), "{text}");
        }
    }
}
