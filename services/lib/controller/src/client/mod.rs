//! A typed client of the gateway: get, list, watch, create, update, patch and delete for every kind.

mod call;
mod conditional;
mod impersonation;
mod metrics;
mod part;
mod read;
mod scale;
mod settings;
mod untyped;
mod write;

use std::sync::Arc;
use std::time::Duration;

use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_tls::Credentials;
use setpoint_transport::EarlyEnd;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};

use impersonation::Impersonation;
pub use read::{ListOptions, Listed};
pub(crate) use read::{parse, unpack};
pub use settings::{Error, Settings};
pub use write::Preconditions;

use crate::informer::Informer;
use crate::{Fence, Tasks, View, channel};

/// The largest response in bytes; a page of a list holds many objects.
const MAX_ANSWER: usize = 64 << 20;

/// A client of the gateways. Clones share its connection.
///
/// It connects when first used, to any of the gateways, and reconnects by itself, perhaps to another one. It leaves a
/// gateway that is not ready for one that is. A call without a connection fails with `ServiceUnavailable`.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
    client: ObjectsClient<EarlyEnd>,
    writer: Arc<str>,
    host: Arc<str>,
    timeout: Duration,
    fence: Option<MetadataValue<Ascii>>,
    /// `None` for the user of the connection.
    impersonation: Option<Arc<Impersonation>>,
    /// The header with a bearer token, for calls without a certificate that is known.
    authorization: Option<MetadataValue<Ascii>>,
    tasks: Tasks,
    /// Stops the background tasks when the last clone is dropped.
    _stop: Option<Arc<DropGuard>>,
}

impl Client {
    /// Returns a client without a certificate that writes as `writer`, which becomes the field manager and the
    /// `writer` of each cause.
    ///
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the address is not a URI, or one of TLS.
    pub fn connect(settings: &Settings, writer: &str) -> Result<Self, Error> {
        Self::connect_with(settings, None, writer)
    }

    /// Returns a client like [`Self::connect`] that presents these credentials to gateways with an address of TLS.
    ///
    /// # Errors
    /// If the address is not a URI, or one of TLS and there are no credentials.
    pub fn connect_with(
        settings: &Settings,
        credentials: Option<Credentials>,
        writer: &str,
    ) -> Result<Self, Error> {
        let stop = CancellationToken::new();
        let tasks = Tasks::default();
        let channel = channel::open(settings, credentials, &tasks, &stop)?;
        let mut gateway = Self::over(channel, settings, writer);
        gateway.tasks = tasks;
        gateway._stop = Some(Arc::new(stop.drop_guard()));
        Ok(gateway)
    }

    /// Returns a client over a channel of the caller, for tests and simulations; see [`Self::endpoint`].
    pub fn over(channel: Channel, settings: &Settings, writer: &str) -> Self {
        Self {
            channel: channel.clone(),
            client: ObjectsClient::new(EarlyEnd::new(channel))
                .max_decoding_message_size(MAX_ANSWER),
            writer: writer.into(),
            host: settings.host().into(),
            timeout: settings.timeout,
            fence: None,
            impersonation: None,
            authorization: None,
            tasks: Tasks::default(),
            _stop: None,
        }
    }

    /// Returns the keepalive, windows and timeouts of connections to the gateway.
    ///
    /// # Errors
    /// If the address is not a URI.
    pub fn endpoint(settings: &Settings) -> Result<Endpoint, Error> {
        channel::endpoint(&settings.address)
    }

    /// Returns a client of the same connection whose writes are refused once the fence's term has passed.
    #[must_use]
    pub fn under(&self, fence: &Fence) -> Self {
        let header = fence.to_string().parse();
        Self {
            fence: (!fence.is_open()).then(|| header.expect("names and numbers are ASCII")),
            ..self.clone()
        }
    }

    /// Returns a client of the same connection that writes as `writer`.
    #[must_use]
    pub fn writing_as(&self, writer: &str) -> Self {
        Self {
            writer: writer.into(),
            ..self.clone()
        }
    }

    /// Returns a client of the same connection that acts as another user, a member of these groups, in all calls and
    /// watches. The user of the connection needs the permission to impersonate each of them.
    ///
    /// # Panics
    /// If a name is not ASCII.
    #[must_use]
    pub fn acting_as(&self, user: &str, groups: &[&str]) -> Self {
        Self {
            impersonation: Some(Arc::new(Impersonation::new(user, groups))),
            ..self.clone()
        }
    }

    /// Returns a client of the same connection that sends a bearer token with its calls. The gateway reads it if it
    /// does not know the certificate of the connection.
    ///
    /// # Panics
    /// If the token is not ASCII.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        let mut header: MetadataValue<Ascii> =
            format!("Bearer {token}").parse().expect("a token is ASCII");
        header.set_sensitive(true);
        Self {
            authorization: Some(header),
            ..self.clone()
        }
    }

    /// Returns an informer over all objects of the view's kind.
    pub fn informer<V: View>(&self) -> Informer<V> {
        Informer::new(self.clone())
    }

    /// Returns host and port of the gateway, as configured.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the connection, for the gateway's other services.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Returns the background tasks that use this client: its own, informers, elections, recorders of Events,
    /// membership.
    pub const fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Returns the field manager of its writes.
    pub fn writer(&self) -> &str {
        &self.writer
    }
}
