//! A network link to a server: a TCP relay that can hold, lose or cut the traffic without telling either side.

use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// Size of the buffer for one read.
const BUFFER: usize = 64 << 10;

/// The faults of a link. Connections are numbered in the order in which they were made, from 0.
#[derive(Clone, Debug, Default)]
struct Faults {
    held: Held,
    /// Bytes of connections before this one are dropped.
    lost_before: usize,
    /// Connections before this one are closed.
    cut_before: usize,
    /// All connections are closed.
    cut: bool,
}

impl Faults {
    fn closes(&self, connection: usize) -> bool {
        self.cut || connection < self.cut_before
    }
}

/// The traffic that is held back.
#[derive(Clone, Copy, Debug, Default)]
enum Held {
    #[default]
    Nothing,
    /// The bytes to the target, on all connections.
    Requests,
    /// The bytes from the target, on all connections.
    Answers,
    /// Both directions of one connection.
    Connection(usize),
}

/// A relay from a port of 127.0.0.1 to one address. It has a runtime of its own, so that tests need none.
pub struct Link {
    scheme: String,
    address: SocketAddr,
    faults: watch::Sender<Faults>,
    state: State,
    runtime: Option<Runtime>,
}

/// The state shared by the tasks of all connections.
#[derive(Clone, Default)]
struct State {
    connections: Arc<AtomicUsize>,
    backlog: Backlog,
}

/// By connection, the bytes to the target that are held back.
type Backlog = Arc<Mutex<BTreeMap<usize, Vec<u8>>>>;

impl Link {
    /// Starts a link without faults to `target`, `host:port` or a URL of that.
    ///
    /// # Panics
    /// If 127.0.0.1 has no free port or no thread can be started.
    pub fn to(target: &str) -> Self {
        let (scheme, target) = target.split_once("://").unwrap_or(("http", target));
        let (scheme, target) = (scheme.to_owned(), target.to_owned());
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a thread can be started");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener
            .set_nonblocking(true)
            .expect("sockets can be non-blocking");
        let address = listener.local_addr().expect("the listener is bound");
        let (faults, state) = (watch::Sender::default(), State::default());
        runtime.spawn(accept(listener, target, state.clone(), faults.subscribe()));
        Self {
            scheme,
            address,
            faults,
            state,
            runtime: Some(runtime),
        }
    }

    /// Returns the URL of the link, with the scheme of the server's.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Returns the number of connections made so far.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Holds back the bytes to the target from now on; answers still pass.
    pub fn hold_requests(&self) {
        self.faults
            .send_modify(|faults| faults.held = Held::Requests);
    }

    /// Holds back the bytes from the target from now on; requests still pass.
    pub fn hold_answers(&self) {
        self.faults
            .send_modify(|faults| faults.held = Held::Answers);
    }

    /// Closes the open connections, and loses what they held back. New connections work.
    pub fn cut_open_connections(&self) {
        let open = self.connections();
        self.faults.send_modify(|faults| {
            (faults.cut_before, faults.held) = (open, Held::Nothing);
        });
    }

    /// Holds back both directions of a connection from now on.
    pub fn hold_connection(&self, number: usize) {
        self.faults
            .send_modify(|faults| faults.held = Held::Connection(number));
    }

    /// Returns the bytes to the target that are held back.
    pub fn backlog(&self) -> Vec<u8> {
        let backlog = self.state.backlog.lock();
        backlog.values().flatten().copied().collect()
    }

    /// Delivers the held bytes, and later ones without a delay.
    pub fn release(&self) {
        self.faults
            .send_modify(|faults| faults.held = Held::Nothing);
    }

    /// Drops all bytes on the open connections, in both directions. New connections work.
    pub fn lose_open_connections(&self) {
        let open = self.connections();
        self.faults.send_modify(|faults| faults.lost_before = open);
    }

    /// Closes all connections, now and in the future.
    pub fn cut(&self) {
        self.faults.send_modify(|faults| faults.cut = true);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(
    listener: std::net::TcpListener,
    target: String,
    state: State,
    faults: watch::Receiver<Faults>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (near, _) = listener.accept().await?;
        let number = state.connections.fetch_add(1, Ordering::SeqCst);
        let (target, state, faults) = (target.clone(), state.clone(), faults.clone());
        tokio::spawn(async move {
            let mut cut = faults.clone();
            tokio::select! {
                biased;
                _ = cut.wait_for(|faults| faults.closes(number)) => Ok(()),
                ended = connect(near, &target, number, state, faults) => ended,
            }
        });
    }
}

async fn connect(
    near: TcpStream,
    target: &str,
    number: usize,
    state: State,
    faults: watch::Receiver<Faults>,
) -> io::Result<()> {
    let far = TcpStream::connect(target).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    let requests = Direction {
        number,
        backlog: Some(state.backlog),
        faults: faults.clone(),
    };
    let answers = Direction {
        number,
        backlog: None,
        faults,
    };
    // The end of one direction does not end the other.
    let _ = tokio::join!(
        requests.forward(near_in, far_out),
        answers.forward(far_in, near_out)
    );
    Ok(())
}

/// One direction of a connection.
struct Direction {
    number: usize,
    /// Where to record held bytes, for the direction to the target.
    backlog: Option<Backlog>,
    faults: watch::Receiver<Faults>,
}

impl Direction {
    async fn forward(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> io::Result<()> {
        let (mut waiting, mut ended) = (Vec::new(), false);
        let mut buffer = vec![0; BUFFER];
        loop {
            let faults = self.faults.borrow_and_update().clone();
            if faults.closes(self.number) {
                // The cut releases what was held; until it ends this task, nothing of that may be delivered.
                return pending().await;
            }
            let held = self.is_held(faults.held);
            self.record(if held { &waiting } else { &[] });
            if !held {
                let lost = self.number < faults.lost_before;
                if !lost {
                    to.write_all(&waiting).await?;
                }
                waiting.clear();
                match (ended, lost) {
                    // A lost end must not be visible either, so `to` stays open.
                    (true, true) => return pending().await,
                    (true, false) => return to.shutdown().await,
                    (false, _) => {}
                }
            }
            tokio::select! {
                read = from.read(&mut buffer), if !ended => match read.unwrap_or_default() {
                    0 => ended = true,
                    size => waiting.extend_from_slice(&buffer[..size]),
                },
                changed = self.faults.changed() => if changed.is_err() { return Ok(()) },
            }
        }
    }

    fn is_held(&self, held: Held) -> bool {
        match held {
            Held::Nothing => false,
            Held::Requests => self.backlog.is_some(),
            Held::Answers => self.backlog.is_none(),
            Held::Connection(number) => number == self.number,
        }
    }

    fn record(&self, waiting: &[u8]) {
        let Some(backlog) = &self.backlog else { return };
        let mut backlog = backlog.lock();
        if waiting.is_empty() {
            backlog.remove(&self.number);
        } else {
            waiting.clone_into(backlog.entry(self.number).or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    async fn connected() -> (Link, TcpStream, TcpStream) {
        let target = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let link = Link::to(&target.local_addr().expect("bound").to_string());
        let near = TcpStream::connect(link.address).await.expect("a link");
        let (far, _) = target.accept().await.expect("a connection");
        (link, near, far)
    }

    async fn read(stream: &mut TcpStream, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).await.expect("bytes");
        bytes
    }

    #[tokio::test]
    async fn held_requests_arrive_in_order_after_the_release_while_answers_pass() {
        let (link, mut near, mut far) = connected().await;
        link.hold_requests();
        near.write_all(b"late").await.expect("a buffer");
        far.write_all(b"answer").await.expect("a buffer");
        assert_eq!(read(&mut near, 6).await, b"answer");
        while link.backlog() != b"late" {
            tokio::task::yield_now().await;
        }
        near.shutdown().await.expect("an end");
        link.release();
        let mut received = Vec::new();
        far.read_to_end(&mut received).await.expect("an end");
        assert_eq!(received, b"late");
    }

    #[tokio::test]
    async fn a_cut_link_closes_open_and_new_connections() {
        let (link, mut near, _far) = connected().await;
        link.cut();
        assert_eq!(near.read(&mut [0]).await.unwrap_or_default(), 0);
        let mut again = TcpStream::connect(link.address).await.expect("a listener");
        assert_eq!(again.read(&mut [0]).await.unwrap_or_default(), 0);
    }

    /// Many times, since the connection is cut while an answer arrives.
    #[tokio::test]
    async fn held_answers_are_lost_with_their_connection_while_requests_pass() {
        for _ in 0..200 {
            let (link, mut near, mut far) = connected().await;
            link.hold_answers();
            near.write_all(b"request").await.expect("a buffer");
            assert_eq!(read(&mut far, 7).await, b"request");
            far.write_all(b"answer").await.expect("a buffer");
            link.cut_open_connections();
            assert_eq!(near.read(&mut [0]).await.unwrap_or_default(), 0);
            let mut again = TcpStream::connect(link.address).await.expect("a listener");
            again.write_all(b"again").await.expect("a buffer");
        }
    }

    #[tokio::test]
    async fn bytes_on_connections_opened_before_a_loss_do_not_arrive() {
        let (link, mut near, mut far) = connected().await;
        link.lose_open_connections();
        near.write_all(b"lost").await.expect("a buffer");
        let mut buffer = [0; 8];
        let arrived = timeout(Duration::from_millis(100), far.read(&mut buffer));
        assert!(arrived.await.is_err(), "nothing arrives, not even an end");
        assert_eq!(link.connections(), 1);
    }
}
