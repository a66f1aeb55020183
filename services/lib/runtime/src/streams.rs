//! Streams between clients and containers: of commands, of containers' own processes, and of TCP connections.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::Error;

/// Maximum size of a chunk that is read at once.
pub const CHUNK: usize = 32 << 10;
/// Maximum number of chunks between a source and its reader.
pub const BUFFERED_CHUNKS: usize = 4;
/// Timeout of a connection to a Pod.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The streams of a process that are connected to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// Whether the client writes to stdin.
    pub stdin: bool,
    /// Whether the client reads stdout.
    pub stdout: bool,
    /// Whether the client reads stderr.
    pub stderr: bool,
    /// Whether the process has a terminal, whose output is all stdout.
    pub tty: bool,
}

/// Data that a client sends to a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Bytes for stdin.
    Stdin(Bytes),
    /// The end of stdin.
    StdinEnd,
    /// The size of the terminal, in columns and rows.
    Resize(u16, u16),
}

/// Data that a client receives from a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes of stdout.
    Stdout(Bytes),
    /// Bytes of stderr.
    Stderr(Bytes),
    /// The exit code, 128 + n for signal n. The last item.
    Exit(i32),
}

/// The input of a process. Its end implies [`Input::StdinEnd`].
pub type Inputs = BoxStream<'static, Input>;

/// The output of a process. Whoever drops it before the end stops the process.
pub type Outputs = BoxStream<'static, Result<Output, Error>>;

/// The sending half of [`Outputs`], with a bounded buffer.
pub type OutputSender = mpsc::Sender<Result<Output, Error>>;

/// Returns a bounded channel of outputs.
pub fn output_channel() -> (OutputSender, Outputs) {
    let (sender, receiver) = mpsc::channel(BUFFERED_CHUNKS);
    let next = |mut receiver: mpsc::Receiver<_>| async move {
        let item = receiver.recv().await?;
        Some((item, receiver))
    };
    (sender, futures::stream::unfold(receiver, next).boxed())
}

/// A TCP connection to a Pod.
pub trait Duplex: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// A TCP connection to a Pod, by whatever way the runtime reaches it.
pub type Connection = Pin<Box<dyn Duplex>>;

/// Connects to an address of a Pod.
///
/// # Errors
/// If the connection is refused, or not accepted in time.
pub async fn dial(address: SocketAddr) -> Result<Connection, Error> {
    let failed = |source| Error::Connect(Unconnected { address, source });
    let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
    let stream = stream.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    connection(stream.map_err(failed)?).map_err(failed)
}

/// Returns a stream as a connection to a Pod.
///
/// # Errors
/// If the system refuses an option of it.
pub fn connection(stream: TcpStream) -> io::Result<Connection> {
    stream.set_nodelay(true)?;
    Ok(Box::pin(stream))
}

/// Why a connection could not be established, in the words of Go's `net` package, which users know from the kubelet.
#[derive(Debug)]
pub struct Unconnected {
    /// The address.
    pub address: SocketAddr,
    /// The error of the system.
    pub source: io::Error,
}

impl fmt::Display for Unconnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, source } = self;
        match source.kind() {
            io::ErrorKind::TimedOut => write!(f, "dial tcp {address}: i/o timeout"),
            io::ErrorKind::ConnectionRefused => {
                write!(f, "dial tcp {address}: connect: connection refused")
            }
            _ => write!(f, "dial tcp {address}: connect: {source}"),
        }
    }
}
