//! One question to one server.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hickory_proto::ProtoError;
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query};
use hickory_proto::serialize::binary::DecodeError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::server::UDP_PAYLOAD;

/// The largest datagram that is read.
const MAX_DATAGRAM: usize = 4096;

/// The reason why a server has not answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the connection failed")]
    Io(#[from] io::Error),
    #[error("the question cannot be written")]
    Encode(#[from] ProtoError),
    #[error("the answer cannot be read")]
    Decode(#[from] DecodeError),
    #[error("the answer is to another question")]
    Other,
    #[error("no answer in time")]
    Timeout,
}

/// Asks by UDP, and by TCP if the answer does not fit.
///
/// Each question has a port and an id of its own, so that who does not see it cannot answer it.
pub async fn ask(
    server: SocketAddr,
    query: &Query,
    dnssec: bool,
    limit: Duration,
) -> Result<Message, Error> {
    let question = question(query, dnssec);
    let bytes = question.to_vec()?;
    let asking = async {
        let answer = by_udp(server, &bytes, &question).await?;
        match answer.metadata.truncation {
            true => by_tcp(server, &bytes, &question).await,
            false => Ok(answer),
        }
    };
    timeout(limit, asking).await.unwrap_or(Err(Error::Timeout))
}

fn question(query: &Query, dnssec: bool) -> Message {
    let mut message = Message::new(rand::random(), MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(query.clone());
    let mut edns = Edns::new();
    edns.set_max_payload(UDP_PAYLOAD);
    edns.set_dnssec_ok(dnssec);
    message.set_edns(edns);
    message
}

async fn by_udp(server: SocketAddr, bytes: &[u8], question: &Message) -> Result<Message, Error> {
    let any: SocketAddr = match server.is_ipv4() {
        true => ([0, 0, 0, 0], 0).into(),
        false => ([0u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    socket.send(bytes).await?;
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        let length = socket.recv(&mut buffer).await?;
        // What is no answer to this question may be forged: the right one may still come.
        if let Ok(answer) = checked(&buffer[..length], question) {
            return Ok(answer);
        }
    }
}

async fn by_tcp(server: SocketAddr, bytes: &[u8], question: &Message) -> Result<Message, Error> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(bytes.len()).map_err(|_| Error::Other)?;
    let framed = [&length.to_be_bytes(), bytes].concat();
    stream.write_all(&framed).await?;
    let length = stream.read_u16().await?;
    let mut answer = vec![0; length.into()];
    stream.read_exact(&mut answer).await?;
    checked(&answer, question)
}

fn checked(bytes: &[u8], question: &Message) -> Result<Message, Error> {
    let answer = Message::from_vec(bytes)?;
    let same = answer.metadata.id == question.metadata.id
        && answer.metadata.message_type == MessageType::Response
        && answer.queries == question.queries;
    same.then_some(answer).ok_or(Error::Other)
}
