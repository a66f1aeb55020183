//! Both ends of a connection. Only the client's opens streams.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::frame::{Frame, FrameReader, FrameWriter, INTERNAL_ERROR, REFUSED};
use super::headers::Headers;

/// The streams that a client may have open at the same time. Port forwarding needs two for each connection.
const MOST_STREAMS: usize = 1024;
/// The frames of all streams that wait to be written.
const OUTGOING: usize = 16;
/// The streams that [`connect`] opens at most.
pub const MOST_OPENED: usize = OUTGOING;
/// The frames of one stream that wait to be read, of at most 32 KiB each.
const INCOMING: usize = 4;
/// The time in which a stream has to be read, for the others wait for it.
const STALL: Duration = Duration::from_secs(600);
/// The time in which the client has to close a connection that has ended.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A stream, at either end.
pub struct Stream {
    /// The number of the stream, which is unique in its connection.
    pub id: u32,
    headers: Headers,
    /// The bytes that the other end sends, until it ends the stream.
    pub data: mpsc::Receiver<Bytes>,
    /// The direction to the other end.
    pub writer: Writer,
}

impl Stream {
    /// Returns the value of a header; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name)
    }
}

/// The other end is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// This end's direction of a stream.
#[derive(Clone)]
pub struct Writer {
    id: u32,
    frames: mpsc::Sender<Frame>,
}

impl Writer {
    /// Sends data.
    ///
    /// # Errors
    /// If the other end is gone.
    pub async fn write(&self, data: Bytes) -> Result<(), Gone> {
        self.send(Frame::Data {
            id: self.id,
            is_last: false,
            data,
        })
        .await
    }

    /// Ends the stream in this direction.
    pub async fn end(&self) {
        let end = Frame::Data {
            id: self.id,
            is_last: true,
            data: Bytes::new(),
        };
        // An end that is gone needs no end.
        let _ = self.send(end).await;
    }

    /// Breaks the stream in both directions.
    pub async fn reset(&self) {
        let (id, status) = (self.id, INTERNAL_ERROR);
        let _ = self.send(Frame::Reset { id, status }).await;
    }

    async fn send(&self, frame: Frame) -> Result<(), Gone> {
        self.frames.send(frame).await.map_err(|_| Gone)
    }
}

/// The streams that the client opens.
pub struct Incoming {
    streams: mpsc::Receiver<Stream>,
    frames: mpsc::Sender<Frame>,
}

impl Incoming {
    /// Returns the next stream; `None` when the connection has ended.
    pub async fn next(&mut self) -> Option<Stream> {
        self.streams.recv().await
    }

    /// Ends the connection, once what was sent before is written.
    pub async fn close(&self) {
        let _ = self.frames.send(Frame::GoAway { last: 0 }).await;
    }
}

/// Returns the streams of a connection, and the future that reads and writes it. That ends with the connection.
pub fn accept<Io>(connection: Io) -> (Incoming, impl Future<Output = ()> + Send)
where
    Io: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reader, writer) = split(connection);
    let (sender, streams) = mpsc::channel(1);
    let (frames, outgoing) = mpsc::channel(OUTGOING);
    let incoming = Incoming {
        streams,
        frames: frames.clone(),
    };
    let reader = Reader {
        frames: FrameReader::new(reader),
        outgoing: frames,
        incoming: sender,
        open: HashMap::new(),
        newest: 0,
        pings: 1,
    };
    (incoming, run(reader, writer, outgoing))
}

/// Opens streams with these headers on a connection to a server. Returns them, and the future that reads and writes the
/// connection; to drop it ends the connection.
///
/// # Errors
/// If there are more than [`MOST_OPENED`] streams.
pub fn connect<Io, const N: usize>(
    connection: Io,
    streams: Vec<[(&str, &str); N]>,
) -> io::Result<(Vec<Stream>, impl Future<Output = ()> + Send + use<Io, N>)>
where
    Io: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reader, writer) = split(connection);
    // A server opens no streams.
    let (incoming, _) = mpsc::channel(1);
    let (frames, outgoing) = mpsc::channel(OUTGOING);
    let mut reader = Reader {
        frames: FrameReader::new(reader),
        outgoing: frames,
        incoming,
        open: HashMap::new(),
        newest: u32::MAX,
        pings: 0,
    };
    let numbers = (1..).step_by(2);
    let opened = streams.into_iter().zip(numbers);
    let opened = opened.map(|(headers, id)| reader.open(id, &headers));
    let opened = opened.collect::<io::Result<_>>()?;
    Ok((opened, run(reader, writer, outgoing)))
}

async fn run<Io>(
    mut reader: Reader<ReadHalf<Io>>,
    writer: WriteHalf<Io>,
    outgoing: mpsc::Receiver<Frame>,
) where
    Io: AsyncRead + AsyncWrite + Send,
{
    let ended = tokio::select! {
        ended = reader.run() => ended.map(|()| false),
        ended = write(writer, outgoing) => ended.map(|()| true),
    };
    match ended {
        // The client reads the last frames before it closes; closing first could lose them.
        Ok(true) => {
            let _ = timeout(CLOSE_TIMEOUT, reader.run()).await;
        }
        Ok(false) => {}
        Err(error) => tracing::debug!(%error, "a SPDY connection broke"),
    }
}

/// Writes frames until the connection is to end.
async fn write<Io: AsyncRead + AsyncWrite>(
    writer: WriteHalf<Io>,
    mut frames: mpsc::Receiver<Frame>,
) -> io::Result<()> {
    let mut writer = FrameWriter::new(writer)?;
    while let Some(frame) = frames.recv().await {
        let is_end = matches!(frame, Frame::GoAway { .. });
        writer.write(frame).await?;
        if is_end {
            return writer.shutdown().await;
        }
        if frames.is_empty() {
            writer.flush().await?;
        }
    }
    writer.shutdown().await
}

struct Reader<R> {
    frames: FrameReader<R>,
    outgoing: mpsc::Sender<Frame>,
    incoming: mpsc::Sender<Stream>,
    /// The streams that the other end has not ended.
    open: HashMap<u32, mpsc::Sender<Bytes>>,
    /// The number of the newest stream that the other end has opened; the largest if it may not open any.
    newest: u32,
    /// The remainder by two of the numbers of the other end's pings.
    pings: u32,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Opens a stream.
    fn open(&mut self, id: u32, headers: &[(&str, &str)]) -> io::Result<Stream> {
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let headers = Headers(headers.collect());
        let frame = Frame::SynStream {
            id,
            is_last: false,
            headers: headers.clone(),
        };
        let sent = self.outgoing.try_send(frame);
        sent.map_err(|_| io::Error::other("too many streams"))?;
        let (sender, data) = mpsc::channel(INCOMING);
        self.open.insert(id, sender);
        let frames = self.outgoing.clone();
        let writer = Writer { id, frames };
        Ok(Stream {
            id,
            headers,
            data,
            writer,
        })
    }

    /// Reads frames until the other end ends the connection.
    async fn run(&mut self) -> io::Result<()> {
        while let Some(frame) = self.frames.next().await? {
            match frame {
                Frame::SynStream {
                    id,
                    is_last,
                    headers,
                } => self.opened(id, is_last, headers).await,
                Frame::Data { id, is_last, data } => self.received(id, is_last, data).await,
                Frame::Reset { id, .. } => {
                    self.open.remove(&id);
                }
                // Those of a client have odd numbers. Others are answers.
                Frame::Ping(id) if id % 2 == self.pings => self.send(Frame::Ping(id)).await,
                Frame::GoAway { .. } => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    async fn opened(&mut self, id: u32, is_last: bool, headers: Headers) {
        self.open.retain(|_, data| !data.is_closed());
        let is_new = id % 2 == 1 && id > self.newest;
        if !is_new || self.open.len() >= MOST_STREAMS {
            let status = REFUSED;
            return self.send(Frame::Reset { id, status }).await;
        }
        self.newest = id;
        let (sender, data) = mpsc::channel(INCOMING);
        if !is_last {
            self.open.insert(id, sender);
        }
        let headers_of_reply = Headers::default();
        self.send(Frame::SynReply {
            id,
            headers: headers_of_reply,
        })
        .await;
        let frames = self.outgoing.clone();
        let stream = Stream {
            id,
            headers,
            data,
            writer: Writer { id, frames },
        };
        // Without a receiver the connection ends soon.
        let _ = self.incoming.send(stream).await;
    }

    async fn received(&mut self, id: u32, is_last: bool, data: Bytes) {
        let Some(stream) = self.open.get(&id).cloned() else {
            return;
        };
        let stalled = match data.is_empty() {
            true => false,
            // A stream that is not read any more takes data and drops it.
            false => timeout(STALL, stream.send(data)).await.is_err(),
        };
        if is_last || stalled {
            self.open.remove(&id);
        }
        if stalled {
            let status = INTERNAL_ERROR;
            self.send(Frame::Reset { id, status }).await;
        }
    }

    async fn send(&mut self, frame: Frame) {
        // The writer ends only with the connection.
        let _ = self.outgoing.send(frame).await;
    }
}
