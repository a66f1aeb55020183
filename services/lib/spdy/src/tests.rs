//! A client and a server that talk over a pipe, and frames as other implementations write them.

use std::io::Read as _;

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, split};

use super::connection::{accept, connect};
use super::dictionary::DICTIONARY;
use super::frame::{Frame, FrameReader, FrameWriter};
use super::headers::{Decoder, Encoder, Headers};

fn headers(pairs: &[(&str, &str)]) -> Headers {
    let owned = pairs
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()));
    Headers(owned.collect())
}

#[test]
fn headers_depend_on_those_before_them() {
    let (mut encoder, mut decoder) = (Encoder::new().unwrap(), Decoder::default());
    let mut sizes = Vec::new();
    for index in 0..3 {
        let sent = headers(&[
            ("streamtype", "data"),
            ("port", "8080"),
            ("requestid", &index.to_string()),
        ]);
        let block = encoder.encode(&sent).unwrap();
        sizes.push(block.len());
        assert_eq!(decoder.decode(&block).unwrap(), sent);
    }
    assert!(sizes[1] < sizes[0] / 2, "{sizes:?}");
    let block = encoder.encode(&Headers::default()).unwrap();
    assert_eq!(decoder.decode(&block).unwrap(), Headers::default());
}

#[test]
fn malformed_headers_are_errors() {
    assert!(Decoder::default().decode(b"no zlib at all").is_err());
    // More than any client sends.
    let mut encoder = Encoder::new().unwrap();
    let block = encoder
        .encode(&headers(&[("a", &"x".repeat(100_000))]))
        .unwrap();
    assert!(Decoder::default().decode(&block).is_err());
    // A length beyond the block.
    let mut compress = Compress::new(Compression::fast(), true);
    compress.set_dictionary(&DICTIONARY).unwrap();
    let mut block = Vec::with_capacity(100);
    let count = [0, 0, 0, 1, 0, 0, 1, 0];
    compress
        .compress_vec(&count, &mut block, FlushCompress::Sync)
        .unwrap();
    assert!(Decoder::default().decode(&block).is_err());
}

/// Returns the frames of some bytes.
async fn read(bytes: &[u8]) -> Result<Vec<Frame>, std::io::Error> {
    let mut reader = FrameReader::new(bytes);
    let mut frames = Vec::new();
    while let Some(frame) = reader.next().await? {
        frames.push(frame);
    }
    Ok(frames)
}

#[tokio::test]
async fn frames_are_those_of_the_draft() {
    // A ping, a reset, a window update, settings, data with the flag FIN, and the end.
    let bytes = [
        &b"\x80\x03\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01"[..],
        b"\x80\x03\x00\x03\x00\x00\x00\x08\x00\x00\x00\x05\x00\x00\x00\x05",
        b"\x80\x03\x00\x09\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x10\x00",
        b"\x80\x03\x00\x04\x00\x00\x00\x04\x00\x00\x00\x00",
        b"\x00\x00\x00\x03\x01\x00\x00\x02hi",
        b"\x80\x03\x00\x07\x00\x00\x00\x08\x00\x00\x00\x03\x00\x00\x00\x00",
    ];
    let frames = read(&bytes.concat()).await.unwrap();
    let data = Bytes::from_static(b"hi");
    assert_eq!(
        frames,
        [
            Frame::Ping(1),
            Frame::Reset { id: 5, status: 5 },
            Frame::Ignored,
            Frame::Ignored,
            Frame::Data {
                id: 3,
                is_last: true,
                data
            },
            Frame::GoAway { last: 3 },
        ]
    );
    for malformed in [
        &b"\x80\x02\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01"[..],
        b"\x80\x03\x00\x06\x00\x00\x00\x02\x00\x00",
        b"\x80\x03\x00\x06\x00\xff\xff\xff",
        b"\x80\x03\x00",
        b"\x00\x00\x00\x03\x01\x00\x00\x02h",
    ] {
        assert!(read(malformed).await.is_err(), "{malformed:?}");
    }
}

#[tokio::test]
async fn what_is_written_is_read_again_and_large_data_comes_in_pieces() {
    let large = Bytes::from(vec![7; 100_000]);
    let written = [
        Frame::SynStream {
            id: 1,
            is_last: true,
            headers: headers(&[("streamtype", "error")]),
        },
        Frame::SynReply {
            id: 1,
            headers: Headers::default(),
        },
        Frame::Data {
            id: 1,
            is_last: true,
            data: large.clone(),
        },
        Frame::Data {
            id: 3,
            is_last: true,
            data: Bytes::new(),
        },
    ];
    let mut bytes = Vec::new();
    let mut writer = FrameWriter::new(&mut bytes).unwrap();
    for frame in written.clone() {
        writer.write(frame).await.unwrap();
    }
    writer.flush().await.unwrap();
    drop(writer);
    let frames = read(&bytes).await.unwrap();
    assert_eq!(frames[..2], written[..2]);
    let mut received = Vec::new();
    for frame in &frames[2..frames.len() - 1] {
        let Frame::Data { data, is_last, .. } = frame else {
            panic!("{frame:?}");
        };
        received.extend_from_slice(data);
        assert_eq!(*is_last, received.len() == large.len());
    }
    assert_eq!(received, large);
    assert_eq!(frames.last(), written.last());
}

/// A client of a server.
struct Client {
    reader: FrameReader<tokio::io::ReadHalf<DuplexStream>>,
    writer: FrameWriter<tokio::io::WriteHalf<DuplexStream>>,
}

impl Client {
    fn new(connection: DuplexStream) -> Self {
        let (reader, writer) = split(connection);
        Self {
            reader: FrameReader::new(reader),
            writer: FrameWriter::new(writer).unwrap(),
        }
    }

    async fn send(&mut self, frame: Frame) {
        self.writer.write(frame).await.unwrap();
        self.writer.flush().await.unwrap();
    }

    async fn open(&mut self, id: u32) {
        let headers = headers(&[("streamtype", "data")]);
        self.send(Frame::SynStream {
            id,
            is_last: false,
            headers,
        })
        .await;
    }

    async fn next(&mut self) -> Option<Frame> {
        self.reader.next().await.unwrap()
    }
}

fn data(id: u32, data: &'static [u8], is_last: bool) -> Frame {
    let data = Bytes::from_static(data);
    Frame::Data { id, is_last, data }
}

#[tokio::test]
async fn streams_carry_data_in_both_directions_until_each_has_ended() {
    let (near, far) = duplex(1 << 16);
    let (mut incoming, driver) = accept(far);
    let driver = tokio::spawn(driver);
    let mut client = Client::new(near);
    client.open(1).await;
    client.send(Frame::Ping(7)).await;
    client.send(data(1, b"in", true)).await;
    let mut stream = incoming.next().await.unwrap();
    assert_eq!((stream.id, stream.header("streamtype")), (1, "data"));
    assert_eq!(stream.data.recv().await.as_deref(), Some(&b"in"[..]));
    assert_eq!(stream.data.recv().await, None);
    stream
        .writer
        .write(Bytes::from_static(b"out"))
        .await
        .unwrap();
    stream.writer.end().await;
    incoming.close().await;
    let mut frames = Vec::new();
    while let Some(frame) = client.next().await {
        frames.push(frame);
    }
    let headers = Headers::default();
    assert_eq!(
        frames,
        [
            Frame::SynReply { id: 1, headers },
            Frame::Ping(7),
            data(1, b"out", false),
            data(1, b"", true),
            Frame::GoAway { last: 0 },
        ]
    );
    drop(client);
    driver.await.unwrap();
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_streams() {
    let (near, far) = duplex(1 << 16);
    let (mut incoming, driver) = accept(far);
    let driver = tokio::spawn(driver);
    let mut client = Client::new(near);
    client.open(1).await;
    let mut stream = incoming.next().await.unwrap();
    drop(client);
    driver.await.unwrap();
    assert_eq!(stream.data.recv().await, None);
    assert!(stream.writer.write(Bytes::new()).await.is_err());
    assert!(incoming.next().await.is_none());
}

#[tokio::test]
async fn numbers_of_streams_are_odd_and_grow() {
    let (near, far) = duplex(1 << 16);
    let (mut incoming, driver) = accept(far);
    let driver = tokio::spawn(driver);
    let mut client = Client::new(near);
    client.open(3).await;
    let _first = incoming.next().await.unwrap();
    client.open(2).await;
    client.open(3).await;
    let mut refused = Vec::new();
    while refused.len() < 2 {
        if let Some(Frame::Reset { id, status }) = client.next().await {
            refused.push((id, status));
        }
    }
    assert_eq!(refused, [(2, 3), (3, 3)]);
    drop(client);
    driver.await.unwrap();
}

#[tokio::test]
async fn data_of_a_stream_that_nobody_reads_any_more_is_dropped() {
    let (near, far) = duplex(1 << 16);
    let (mut incoming, driver) = accept(far);
    let driver = tokio::spawn(driver);
    let mut client = Client::new(near);
    client.open(1).await;
    drop(incoming.next().await.unwrap());
    for _ in 0..20 {
        client.send(data(1, b"x", false)).await;
    }
    client.send(Frame::Ping(1)).await;
    while client.next().await != Some(Frame::Ping(1)) {}
    drop(client);
    driver.await.unwrap();
}

#[tokio::test]
async fn what_is_no_spdy_ends_the_connection() {
    let (mut near, far) = duplex(1 << 16);
    let (mut incoming, driver) = accept(far);
    let other_version = b"\x80\x02\x00\x06\x00\x00\x00\x04";
    near.write_all(other_version).await.unwrap();
    let mut rest = Vec::new();
    let (_, next) = tokio::join!(driver, incoming.next());
    assert!(next.is_none());
    drop(incoming);
    near.read_to_end(&mut rest).await.unwrap();
    assert!(rest.as_slice().bytes().next().is_none());
}

#[tokio::test]
async fn a_client_opens_streams_and_both_ends_end_their_directions() {
    let (here, there) = duplex(1 << 10);
    let (mut incoming, serving) = accept(there);
    let serving = tokio::spawn(serving);
    let streams = vec![[("Streamtype", "stdin")], [("streamtype", "stdout")]];
    let (mut streams, running) = connect(here, streams).unwrap();
    let running = tokio::spawn(running);
    let mut stdin = incoming.next().await.unwrap();
    let stdout = incoming.next().await.unwrap();
    assert_eq!((stdin.id, stdin.header("streamtype")), (1, "stdin"));
    assert_eq!((stdout.id, stdout.header("streamtype")), (3, "stdout"));
    let large = Bytes::from(vec![7; 100_000]);
    streams[0].writer.write(large.clone()).await.unwrap();
    streams[0].writer.end().await;
    let mut read = Vec::new();
    while let Some(piece) = stdin.data.recv().await {
        read.extend_from_slice(&piece);
    }
    assert_eq!(read, large);
    stdout
        .writer
        .write(Bytes::from_static(b"hi"))
        .await
        .unwrap();
    stdout.writer.end().await;
    assert_eq!(streams[1].data.recv().await.unwrap(), "hi");
    assert_eq!(streams[1].data.recv().await, None);
    // To drop the future ends the connection.
    running.abort();
    assert!(incoming.next().await.is_none());
    serving.await.unwrap();
}

#[tokio::test]
async fn a_client_opens_no_more_streams_than_are_written_at_once() {
    let (here, _there) = duplex(1 << 10);
    let streams = vec![[("streamtype", "data")]; super::MOST_OPENED + 1];
    assert!(connect(here, streams).is_err());
}
