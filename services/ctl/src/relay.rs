//! `setpoint relay`: forwards TCP connections of one process to the gateways, to simulate network faults between them.
//!
//! A fault is injected from outside by freezing the relay (SIGSTOP): bytes stop arriving and neither side gets an
//! error, as in a network partition. After SIGCONT the bytes held back arrive late, like TCP retransmissions.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use futures::future::try_join_all;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};

use crate::health;

/// The addresses of a relay.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Name of the relay
    #[arg(long, value_name = "NAME")]
    instance: String,
    /// Address of the readiness check
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// IP address to listen on, on the same ports as the targets
    #[arg(long, value_name = "IP")]
    at: IpAddr,
    /// Target of the connections to this port; may be repeated
    #[arg(long, value_name = "ADDRESS", required = true)]
    to: Vec<SocketAddr>,
}

/// Forwards connections until SIGTERM or SIGINT. Open connections end with the process.
pub async fn relay(options: &Options) -> anyhow::Result<ExitCode> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let targets = options.to.iter();
    let listeners = targets.map(|target| open(options.at, *target));
    for (listener, target) in try_join_all(listeners).await? {
        tokio::spawn(forward_all(listener, target));
    }
    tokio::spawn(health::serve(bind(options.listen).await?));
    println!(
        "{} forwards connections to {}",
        options.instance, options.at
    );
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn open(at: IpAddr, target: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    Ok((bind((at, target.port()).into()).await?, target))
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("cannot listen at {address}"))
}

async fn forward_all(listener: TcpListener, target: SocketAddr) {
    loop {
        let near = health::accept(&listener).await;
        // Both sides see an error as the end of their connection.
        tokio::spawn(forward(near, target));
    }
}

/// Forwards both directions. The end of one direction does not end the other.
async fn forward(mut near: TcpStream, target: SocketAddr) -> io::Result<()> {
    let mut far = TcpStream::connect(target).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    copy_bidirectional(&mut near, &mut far).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Starts a relay, and returns its target and a connection through it.
    async fn through() -> (TcpListener, TcpStream) {
        let target = bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let to = target.local_addr().unwrap();
        let (listener, to) = open([127, 0, 99, 1].into(), to).await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(forward_all(listener, to));
        (target, TcpStream::connect(at).await.unwrap())
    }

    #[tokio::test]
    async fn each_direction_is_forwarded_until_its_own_end() {
        let (target, mut near) = through().await;
        let (mut far, _) = target.accept().await.unwrap();
        near.write_all(b"question").await.unwrap();
        near.shutdown().await.unwrap();
        let mut received = String::new();
        far.read_to_string(&mut received).await.unwrap();
        assert_eq!(received, "question");
        far.write_all(b"answer").await.unwrap();
        drop(far);
        received.clear();
        near.read_to_string(&mut received).await.unwrap();
        assert_eq!(received, "answer");
    }

    #[tokio::test]
    async fn a_connection_ends_when_its_target_is_gone() {
        let (target, mut near) = through().await;
        let (far, _) = target.accept().await.unwrap();
        drop((far, target));
        assert_eq!(near.read(&mut [0]).await.unwrap_or_default(), 0);
        let mut again = TcpStream::connect(near.peer_addr().unwrap()).await.unwrap();
        assert_eq!(again.read(&mut [0]).await.unwrap_or_default(), 0);
    }
}
