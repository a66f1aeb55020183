//! The URL of a server, with the credentials of its clients.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use etcd_client::Channel;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use setpoint_tls::{ClientStream, Credentials};
use tokio::net::TcpStream;
use tonic::transport::{self, Endpoint, Uri};
use tower::service_fn;

/// The URL of a server, or several with commas between them, and the credentials for TLS to it.
#[derive(Clone, Debug)]
pub struct Address {
    url: String,
    credentials: Option<Credentials>,
}

impl Address {
    /// Returns the address of a server without TLS at `<host>:<port>`.
    pub fn plain(place: &str) -> Self {
        Self {
            url: format!("http://{place}"),
            credentials: None,
        }
    }

    /// Returns the address of a server with TLS.
    pub fn secure(url: String, credentials: Credentials) -> Self {
        Self {
            url,
            credentials: Some(credentials),
        }
    }

    /// Returns this server at another URL, such as that of a link to it.
    #[must_use]
    pub fn at(&self, url: String) -> Self {
        Self {
            url,
            ..self.clone()
        }
    }

    /// Returns each of several addresses.
    pub fn each(&self) -> Vec<Self> {
        self.url
            .split(',')
            .map(|url| self.at(url.to_owned()))
            .collect()
    }

    /// Returns `<host>:<port>` of a single address.
    pub fn place(&self) -> &str {
        self.url.split_once("://").map_or("", |(_, place)| place)
    }

    /// Connects to a single address, for HTTP/1.1.
    ///
    /// # Errors
    /// Nothing answers there, or its certificate is not accepted.
    pub async fn connect(&self) -> io::Result<ClientStream<TcpStream>> {
        self.connect_by(Credentials::http1_client).await
    }

    /// Connects to a single address, for HTTP/2.
    ///
    /// # Errors
    /// Nothing answers there, or its certificate is not accepted.
    pub async fn connect_http2(&self) -> io::Result<ClientStream<TcpStream>> {
        self.connect_by(Credentials::client).await
    }

    /// Returns a client of the etcd at a single address. It connects when first used.
    ///
    /// # Errors
    /// The address is not a URL.
    pub async fn etcd(&self) -> Result<etcd_client::Client, etcd_client::Error> {
        let channel = Channel::Tonic(self.channel(|endpoint| endpoint)?);
        etcd_client::Client::from_channel(channel, None).await
    }

    /// Returns a channel to a single address, with these changes of its settings. It connects when first used.
    ///
    /// # Errors
    /// The address is not a URL.
    pub fn channel(
        &self,
        settings: impl FnOnce(Endpoint) -> Endpoint,
    ) -> Result<transport::Channel, transport::Error> {
        let server = self.clone();
        let connector = service_fn(move |_: Uri| {
            let server = server.clone();
            async move { server.connect_http2().await.map(TokioIo::new) }
        });
        let endpoint = Endpoint::from_shared(format!("http://{}", self.place()))?;
        Ok(settings(endpoint).connect_with_connector_lazy(connector))
    }

    async fn connect_by(
        &self,
        config: fn(&Credentials) -> Arc<ClientConfig>,
    ) -> io::Result<ClientStream<TcpStream>> {
        let address: SocketAddr = self.place().parse().map_err(io::Error::other)?;
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let Some(credentials) = &self.credentials else {
            return Ok(ClientStream::Plain(stream));
        };
        let name = ServerName::from(address.ip());
        ClientStream::handshake(config(credentials), name, stream).await
    }

    /// Returns the credentials of clients; `None` without TLS.
    pub fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }
}

impl Deref for Address {
    type Target = str;

    fn deref(&self) -> &str {
        &self.url
    }
}

impl Display for Address {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.url)
    }
}
