//! Connects to members of etcd over TLS.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use setpoint_tls::Credentials;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::Uri;
use tower::Service;

/// The port of URLs without one.
const HTTPS: u16 = 443;

/// Makes connections with the credentials as they are at the time. It has no deadline of its own.
#[derive(Clone)]
pub(super) struct Connector(Arc<ClientConfig>);

impl Connector {
    pub(super) fn new(credentials: &Credentials) -> Self {
        Self(credentials.client())
    }

    async fn connect(self, uri: Uri) -> io::Result<TokioIo<TlsStream<TcpStream>>> {
        // An IPv6 address is in brackets.
        let host = uri.host().unwrap_or_default();
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
        let port = uri.port_u16().unwrap_or(HTTPS);
        let stream = TcpStream::connect((host, port)).await?;
        // Without this option each call waits for the peer's delayed acknowledgement.
        stream.set_nodelay(true)?;
        let stream = TlsConnector::from(self.0).connect(name, stream).await?;
        Ok(TokioIo::new(stream))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        self.clone().connect(uri).boxed()
    }
}
