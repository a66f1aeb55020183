//! A typed client of the gateway: every kind through seven verbs.

mod call;
mod conditional;
mod read;
mod settings;
mod write;

use std::sync::Arc;
use std::time::Duration;

use setpoint_proto::setpoint::objects_client::ObjectsClient;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};

pub use read::{ListOptions, Listed};
pub(crate) use read::{parse, unpack};
pub use settings::{Error, Settings};
pub use write::Preconditions;

use crate::informer::Informer;
use crate::{Fence, Tasks, View, channel};

/// The largest answer that is read: a page of a list holds many objects.
const MAX_ANSWER: usize = 64 << 20;

/// A connection to the gateway. Clones share it.
///
/// It connects when first used, to any of the gateways, and reconnects by itself, perhaps to another one; a call that
/// finds no gateway fails with `ServiceUnavailable`. A gateway that is not ready is left for one that is.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
    client: ObjectsClient<Channel>,
    writer: Arc<str>,
    host: Arc<str>,
    timeout: Duration,
    fence: Option<MetadataValue<Ascii>>,
    tasks: Tasks,
    /// Ends what goes on in the background when the last clone is gone.
    _stop: Option<Arc<DropGuard>>,
}

impl Client {
    /// A client that writes as `writer`, which becomes the field manager and the `writer` of each cause.
    ///
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When the address is no URI.
    pub fn connect(settings: &Settings, writer: &str) -> Result<Self, Error> {
        let stop = CancellationToken::new();
        let tasks = Tasks::default();
        let channel = channel::open(settings, &tasks, &stop)?;
        let mut gateway = Self::over(channel, settings, writer);
        gateway.tasks = tasks;
        gateway._stop = Some(Arc::new(stop.drop_guard()));
        Ok(gateway)
    }

    /// The same over a channel that the caller made, for tests and simulations; see [`Self::endpoint`].
    pub fn over(channel: Channel, settings: &Settings, writer: &str) -> Self {
        Self {
            channel: channel.clone(),
            client: ObjectsClient::new(channel).max_decoding_message_size(MAX_ANSWER),
            writer: writer.into(),
            host: settings.host().into(),
            timeout: settings.timeout,
            fence: None,
            tasks: Tasks::default(),
            _stop: None,
        }
    }

    /// Keepalive, windows and timeouts as every connection to the gateway has them.
    ///
    /// # Errors
    /// When the address is no URI.
    pub fn endpoint(settings: &Settings) -> Result<Endpoint, Error> {
        channel::endpoint(&settings.address)
    }

    /// The same connection, over which every write is refused once the fence's term has passed.
    #[must_use]
    pub fn under(&self, fence: &Fence) -> Self {
        let header = fence.to_string().parse();
        Self {
            fence: (!fence.is_open()).then(|| header.expect("names and numbers are ASCII")),
            ..self.clone()
        }
    }

    /// A cache of all objects of the view's kind, kept up to date.
    pub fn informer<V: View>(&self) -> Informer<V> {
        Informer::new(self.clone())
    }

    /// Host and port of the gateway, as set.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The connection itself, for the gateway's other services.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// The background tasks around it: its own, informers, elections, recorders of Events, and membership.
    pub const fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// The name under which it writes.
    pub fn writer(&self) -> &str {
        &self.writer
    }
}
