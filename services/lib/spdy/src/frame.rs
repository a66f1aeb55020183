//! Frames: how they are read and written.

use std::io;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
    BufWriter,
};

use super::headers::{Decoder, Encoder, Headers};

const VERSION: u16 = 3;
/// The bit that tells control frames from data.
const CONTROL: u32 = 1 << 31;
const FIN: u8 = 1;
/// The largest control frame, in bytes.
const LARGEST: usize = 64 << 10;
/// The bytes of data that are read at once, and the largest frame of data that is written.
pub(super) const CHUNK: usize = 32 << 10;

/// The status of a reset: the stream is not wanted.
pub(super) const REFUSED: u32 = 3;
/// The status of a reset: the other end broke the stream.
pub(super) const INTERNAL_ERROR: u32 = 6;

/// A frame. What has no meaning to Kubernetes is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    SynStream {
        id: u32,
        is_last: bool,
        headers: Headers,
    },
    SynReply {
        id: u32,
        headers: Headers,
    },
    Reset {
        id: u32,
        status: u32,
    },
    Ping(u32),
    GoAway {
        last: u32,
    },
    Data {
        id: u32,
        is_last: bool,
        data: Bytes,
    },
    Ignored,
}

/// The data of a frame that has not been read yet.
struct Rest {
    id: u32,
    is_last: bool,
    length: usize,
}

/// Reads frames. Large ones of data are read in several pieces.
pub(super) struct FrameReader<R> {
    reader: BufReader<R>,
    headers: Decoder,
    rest: Option<Rest>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader: BufReader::with_capacity(CHUNK, reader),
            headers: Decoder::default(),
            rest: None,
        }
    }

    /// Reads a frame; `None` at the end of the connection.
    ///
    /// # Errors
    /// If the connection breaks, or a frame is malformed.
    pub(super) async fn next(&mut self) -> io::Result<Option<Frame>> {
        if let Some(rest) = self.rest.take() {
            return self.data(rest).await.map(Some);
        }
        if self.reader.fill_buf().await?.is_empty() {
            return Ok(None);
        }
        let first = self.reader.read_u32().await?;
        let second = self.reader.read_u32().await?;
        let [flags, ..] = second.to_be_bytes();
        let length = usize::try_from(second & 0x00ff_ffff).map_err(|_| malformed())?;
        if first & CONTROL == 0 {
            let is_last = flags & FIN != 0;
            let rest = Rest {
                id: first,
                is_last,
                length,
            };
            return self.data(rest).await.map(Some);
        }
        let [version_high, version_low, kind_high, kind_low] = first.to_be_bytes();
        let version = u16::from_be_bytes([version_high & 0x7f, version_low]);
        if version != VERSION || length > LARGEST {
            return Err(malformed());
        }
        let mut payload = vec![0; length];
        self.reader.read_exact(&mut payload).await?;
        let kind = u16::from_be_bytes([kind_high, kind_low]);
        self.control(kind, flags, &payload).map(Some)
    }

    async fn data(&mut self, rest: Rest) -> io::Result<Frame> {
        let Rest {
            id,
            is_last,
            length,
        } = rest;
        let piece = length.min(CHUNK);
        let mut data = BytesMut::zeroed(piece);
        self.reader.read_exact(&mut data).await?;
        let left = length - piece;
        if left > 0 {
            let length = left;
            self.rest = Some(Rest {
                id,
                is_last,
                length,
            });
        }
        Ok(Frame::Data {
            id,
            is_last: is_last && left == 0,
            data: data.freeze(),
        })
    }

    fn control(&mut self, kind: u16, flags: u8, mut payload: &[u8]) -> io::Result<Frame> {
        let needed = match kind {
            1 => 10,
            2 | 6 | 8 => 4,
            3 | 7 => 8,
            _ => return Ok(Frame::Ignored),
        };
        if payload.len() < needed {
            return Err(malformed());
        }
        let id = payload.get_u32() & !CONTROL;
        Ok(match kind {
            1 => {
                payload.advance(6);
                Frame::SynStream {
                    id,
                    is_last: flags & FIN != 0,
                    headers: self.headers.decode(payload)?,
                }
            }
            // The state of the decoder depends on all blocks.
            2 => Frame::SynReply {
                id,
                headers: self.headers.decode(payload)?,
            },
            8 => {
                self.headers.decode(payload)?;
                Frame::Ignored
            }
            3 => Frame::Reset {
                id,
                status: payload.get_u32(),
            },
            6 => Frame::Ping(id),
            _ => Frame::GoAway { last: id },
        })
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed SPDY frame")
}

/// Writes frames.
pub(super) struct FrameWriter<W> {
    writer: BufWriter<W>,
    headers: Encoder,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    /// Returns a writer.
    ///
    /// # Errors
    /// If headers cannot be compressed.
    pub(super) fn new(writer: W) -> io::Result<Self> {
        Ok(Self {
            writer: BufWriter::with_capacity(2 * CHUNK, writer),
            headers: Encoder::new()?,
        })
    }

    /// Writes a frame, which may be kept until the next flush.
    ///
    /// # Errors
    /// If the connection breaks.
    pub(super) async fn write(&mut self, frame: Frame) -> io::Result<()> {
        let mut head = BytesMut::with_capacity(64);
        match frame {
            Frame::Data { id, is_last, data } => {
                return self.write_data(id, is_last, &data).await;
            }
            Frame::SynStream {
                id,
                is_last,
                headers,
            } => {
                let block = self.headers.encode(&headers)?;
                control(&mut head, 1, u8::from(is_last), 10 + block.len());
                head.put_u32(id);
                head.put_bytes(0, 6);
                head.put_slice(&block);
            }
            Frame::SynReply { id, headers } => {
                let block = self.headers.encode(&headers)?;
                control(&mut head, 2, 0, 4 + block.len());
                head.put_u32(id);
                head.put_slice(&block);
            }
            Frame::Reset { id, status } => {
                control(&mut head, 3, 0, 8);
                head.put_u32(id);
                head.put_u32(status);
            }
            Frame::Ping(id) => {
                control(&mut head, 6, 0, 4);
                head.put_u32(id);
            }
            Frame::GoAway { last } => {
                control(&mut head, 7, 0, 8);
                head.put_u32(last);
                head.put_u32(0);
            }
            Frame::Ignored => {}
        }
        self.writer.write_all(&head).await
    }

    async fn write_data(&mut self, id: u32, is_last: bool, data: &[u8]) -> io::Result<()> {
        let mut pieces = data.chunks(CHUNK).peekable();
        let mut is_written = false;
        while !is_written {
            let piece = pieces.next().unwrap_or_default();
            is_written = pieces.peek().is_none();
            let fin = u32::from(is_last && is_written) << 24;
            let length = u32::try_from(piece.len()).unwrap_or_default();
            self.writer.write_u32(id).await?;
            self.writer.write_u32(fin | length).await?;
            self.writer.write_all(piece).await?;
        }
        Ok(())
    }

    /// Writes what was kept.
    ///
    /// # Errors
    /// If the connection breaks.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().await
    }

    /// Ends the connection in this direction.
    ///
    /// # Errors
    /// If the connection breaks.
    pub(super) async fn shutdown(&mut self) -> io::Result<()> {
        self.writer.shutdown().await
    }
}

/// Writes the head of a control frame.
fn control(head: &mut BytesMut, kind: u16, flags: u8, length: usize) {
    head.put_u16(1 << 15 | VERSION);
    head.put_u16(kind);
    let length = u32::try_from(length).unwrap_or_default();
    head.put_u32(u32::from(flags) << 24 | length);
}
