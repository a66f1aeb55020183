//! A network between a client and a server that can be made to lose or to hold what passes, without telling either.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const BUFFER: usize = 64 << 10;

/// What happens to the connections, counted in the order in which they were made.
#[derive(Clone, Debug, Default)]
struct Weather {
    /// Those before this one lose everything.
    lost_before: usize,
    /// There is no way through: whoever tries is refused.
    cut: bool,
    /// This one keeps what it should pass on.
    held: Option<usize>,
}

/// Passes TCP connections on to one address.
pub struct Proxy {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
    connections: Arc<AtomicUsize>,
}

impl Proxy {
    /// A network that works, up to `to` (`host:port`, or a URL of that).
    ///
    /// # Panics
    /// When loopback has no port left.
    pub async fn start(to: &str) -> Self {
        let to = to.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("loopback has a free port");
        let proxy = Self {
            address: listener.local_addr().expect("it is bound"),
            weather: watch::Sender::default(),
            connections: Arc::default(),
        };
        let (weather, connections) = (proxy.weather.subscribe(), proxy.connections.clone());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let number = connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(pass(near, to.clone(), number, weather.clone()));
            }
        });
        proxy
    }

    /// Where it listens, `http://…`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections have been made through it.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Swallows whatever is sent over the present connections. New ones work.
    pub fn lose(&self) {
        let now = self.connections();
        self.weather
            .send_modify(|weather| weather.lost_before = now);
    }

    /// Breaks off every connection, and lets none through any more.
    pub fn cut(&self) {
        self.weather.send_modify(|weather| weather.cut = true);
    }

    /// Keeps what comes over the connection of this number, until it is released.
    pub fn hold(&self, number: usize) {
        self.weather
            .send_modify(|weather| weather.held = Some(number));
    }

    /// Passes on what was held.
    pub fn release(&self) {
        self.weather.send_modify(|weather| weather.held = None);
    }
}

async fn pass(near: TcpStream, to: String, number: usize, weather: watch::Receiver<Weather>) {
    let mut cut = weather.clone();
    tokio::select! {
        _ = cut.wait_for(|weather| weather.cut) => {}
        () = converse(near, to, number, weather) => {}
    }
}

async fn converse(near: TcpStream, to: String, number: usize, weather: watch::Receiver<Weather>) {
    let Ok(far) = TcpStream::connect(to).await else {
        return;
    };
    // Two sockets that cannot be tuned are only slower.
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    tokio::join!(
        carry(near_in, far_out, number, weather.clone()),
        carry(far_in, near_out, number, weather),
    );
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    number: usize,
    mut weather: watch::Receiver<Weather>,
) {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = from.read(&mut buffer).await.unwrap_or_default();
        let fair = weather.wait_for(|weather| weather.held != Some(number));
        let lost = match fair.await {
            Ok(weather) => number < weather.lost_before,
            // The test is over.
            Err(_) => return,
        };
        if lost && read == 0 {
            // Nobody is told of the end either.
            return std::future::pending().await;
        }
        if !lost && (read == 0 || to.write_all(&buffer[..read]).await.is_err()) {
            return;
        }
    }
}
