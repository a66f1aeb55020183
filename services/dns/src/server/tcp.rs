//! DNS by TCP: each message after its length, one question at a time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::Responder;
use super::respond::Begun;
use crate::metrics::{self, Transport};

/// The pause after a connection could not be accepted, usually for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Limits on connections by TCP.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of connections; more wait to be accepted.
    pub connections: usize,
    /// Maximum number of connections of one address; more are closed.
    pub connections_per_client: usize,
    /// Time after which a connection without a complete question is closed.
    #[serde(with = "DurationText")]
    pub idle: Duration,
    /// Time that a client has to take an answer.
    #[serde(with = "DurationText")]
    pub write: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            connections_per_client: 32,
            idle: Duration::from_secs(8),
            write: Duration::from_secs(2),
        }
    }
}

/// The number of connections of each client.
type Clients = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// Accepts connections for ever.
pub async fn serve(listener: TcpListener, responder: Arc<Responder>, limits: Limits) {
    let permits = Arc::new(Semaphore::new(limits.connections));
    let clients = Clients::default();
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(permit) = permits.clone().acquire_owned().await else {
            return;
        };
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                debug!(%error, "a connection was not accepted");
                sleep(PAUSE).await;
                continue;
            }
        };
        if let Some(place) = Place::take(&clients, from.ip(), limits.connections_per_client, permit)
        {
            let responder = responder.clone();
            connections.spawn(connection(stream, from, responder, limits, place));
        }
    }
}

/// A connection's place among all, and among those of its client. It is given back when dropped.
struct Place {
    clients: Clients,
    client: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    fn take(
        clients: &Clients,
        client: IpAddr,
        most: usize,
        permit: OwnedSemaphorePermit,
    ) -> Option<Self> {
        let mut counts = clients.lock();
        let count = counts.entry(client).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Self {
            clients: clients.clone(),
            client,
            _permit: permit,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.clients.lock().entry(self.client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

async fn connection(
    mut stream: TcpStream,
    from: SocketAddr,
    responder: Arc<Responder>,
    limits: Limits,
    _place: Place,
) {
    let _ = stream.set_nodelay(true);
    while let Ok(Ok(question)) = timeout(limits.idle, read(&mut stream)).await {
        let answer = match responder.begin(&question, from.ip(), Transport::Tcp) {
            Begun::Ignored => {
                metrics::ignored();
                return;
            }
            Begun::Done(answer) => answer,
            Begun::Waiting(waiting) => responder.finish(*waiting).await,
        };
        match timeout(limits.write, write(&mut stream, &answer)).await {
            Ok(Ok(())) => {}
            _ => return,
        }
    }
}

async fn read(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut message = vec![0; length.into()];
    stream.read_exact(&mut message).await?;
    Ok(message)
}

async fn write(stream: &mut TcpStream, answer: &[u8]) -> io::Result<()> {
    let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
    stream
        .write_all(&[&length.to_be_bytes(), answer].concat())
        .await
}
