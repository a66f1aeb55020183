//! DNS by UDP.

use std::net::SocketAddr;
use std::sync::Arc;

use setpoint_task::catch_unwind;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tracing::debug;

use super::Responder;
use super::respond::{Begun, Waiting};
use crate::metrics::{self, Transport};

/// The longest question that is read: names and options are shorter.
const MAX_QUESTION: usize = 4096;
/// The most forwarded questions that are begun. The forwarder has a limit of its own, which refuses; more than this are
/// dropped, and asked again by their clients.
const MAX_WAITING: usize = 4096;

/// Answers datagrams for ever.
pub async fn serve(socket: Arc<UdpSocket>, responder: Arc<Responder>) {
    let mut buffer = vec![0; MAX_QUESTION];
    let mut waiting = JoinSet::new();
    loop {
        while waiting.try_join_next().is_some() {}
        // An error is that of an earlier answer, whose client is gone.
        let (length, from) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(error) => {
                debug!(%error, "a datagram was not received");
                tokio::task::yield_now().await;
                continue;
            }
        };
        // No client has this port.
        if from.port() == 0 {
            continue;
        }
        let question = &buffer[..length];
        let begin = || responder.begin(question, from.ip(), Transport::Udp);
        // A question that is the end of this task would be the end of all answers.
        match catch_unwind("dns", begin).unwrap_or(Begun::Ignored) {
            Begun::Ignored => metrics::ignored(),
            Begun::Done(answer) => send(&socket, &answer, from).await,
            Begun::Waiting(question) if waiting.len() < MAX_WAITING => {
                waiting.spawn(finish(socket.clone(), responder.clone(), *question, from));
            }
            Begun::Waiting(_) => metrics::rejected(),
        }
    }
}

async fn finish(
    socket: Arc<UdpSocket>,
    responder: Arc<Responder>,
    question: Waiting,
    from: SocketAddr,
) {
    let answer = responder.finish(question).await;
    send(&socket, &answer, from).await;
}

async fn send(socket: &UdpSocket, answer: &[u8], to: SocketAddr) {
    if let Err(error) = socket.send_to(answer, to).await {
        debug!(%to, %error, "a datagram was not sent");
    }
}
