//! `setpoint relay`: stands between one process and the gateways, so that the network between them can be cut.
//!
//! It knows nothing of what it passes on. A cut is made from outside: a relay that is frozen (SIGSTOP) is a network that
//! has fallen silent, without a word to either side; what it holds when it goes on arrives late, like what TCP sends again.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use futures::future::try_join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

/// Enough for the head of a request, of which nothing is looked at.
const HEAD: usize = 1 << 10;
/// After a connection could not be taken.
const REST: Duration = Duration::from_millis(10);

/// What to pass on.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Its name
    #[arg(long, value_name = "NAME")]
    instance: String,
    /// Where it says that it is ready
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The IP at which it takes connections, on the ports of those that they are passed on to
    #[arg(long, value_name = "IP")]
    at: IpAddr,
    /// To whom, on their own ports
    #[arg(long, value_name = "ADDRESS", required = true)]
    to: Vec<SocketAddr>,
}

/// Passes connections on until it is asked to stop.
pub async fn relay(options: &Options) -> anyhow::Result<ExitCode> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let targets = options.to.iter();
    let ways = targets.map(|target| open(options.at, *target));
    for (listener, target) in try_join_all(ways).await? {
        tokio::spawn(pass_all(listener, target));
    }
    tokio::spawn(answer_all(bind(options.listen).await?));
    println!("{} passes on from {}", options.instance, options.at);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    // Whoever is still connected learns of the end from that of the process.
    Ok(ExitCode::SUCCESS)
}

async fn open(at: IpAddr, target: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    Ok((bind((at, target.port()).into()).await?, target))
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("cannot listen at {address}"))
}

async fn pass_all(listener: TcpListener, target: SocketAddr) {
    loop {
        let near = next(&listener).await;
        // However that ends, both sides see it.
        tokio::spawn(pass(near, target));
    }
}

/// The next connection. One that fails as it is made is the caller's trouble, too many of them are everybody's for a while.
async fn next(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(_) => sleep(REST).await,
        }
    }
}

/// Passes on both ways through a buffer each, and an end of one way as an end of that way only.
async fn pass(mut near: TcpStream, target: SocketAddr) -> io::Result<()> {
    let mut far = TcpStream::connect(target).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    copy_bidirectional(&mut near, &mut far).await?;
    Ok(())
}

async fn answer_all(listener: TcpListener) {
    loop {
        tokio::spawn(answer(next(&listener).await));
    }
}

/// Whoever takes connections is ready, whatever was asked.
async fn answer(mut asking: TcpStream) -> io::Result<()> {
    // Unread questions would break the connection off before the answer has arrived.
    let _length = asking.read(&mut [0; HEAD]).await?;
    asking.write_all(b"HTTP/1.0 200 OK\r\n\r\nok").await?;
    asking.shutdown().await
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use setpoint_host::probe;

    use super::*;

    /// A relay to whoever listens here.
    async fn through() -> (TcpListener, TcpStream) {
        let target = bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let to = target.local_addr().unwrap();
        let (listener, to) = open([127, 0, 99, 1].into(), to).await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(pass_all(listener, to));
        (target, TcpStream::connect(at).await.unwrap())
    }

    #[tokio::test]
    async fn both_ways_are_passed_on_and_one_may_end_before_the_other() {
        let (target, mut near) = through().await;
        let (mut far, _) = target.accept().await.unwrap();
        near.write_all(b"question").await.unwrap();
        near.shutdown().await.unwrap();
        let mut heard = String::new();
        far.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "question");
        far.write_all(b"answer").await.unwrap();
        drop(far);
        heard.clear();
        near.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "answer");
    }

    #[tokio::test]
    async fn who_is_passed_on_to_nobody_is_told() {
        let (target, mut near) = through().await;
        let (far, _) = target.accept().await.unwrap();
        drop((far, target));
        assert_eq!(near.read(&mut [0]).await.unwrap_or_default(), 0);
        let mut again = TcpStream::connect(near.peer_addr().unwrap()).await.unwrap();
        assert_eq!(again.read(&mut [0]).await.unwrap_or_default(), 0);
    }

    #[tokio::test]
    async fn a_relay_that_listens_is_ready() {
        let health = bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let address = health.local_addr().unwrap();
        tokio::spawn(answer_all(health));
        assert_eq!(probe::ask(address, "/readyz").await, Ok(()));
    }
}
