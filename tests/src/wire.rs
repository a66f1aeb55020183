//! A wire between two processes that can be held: what is sent meanwhile arrives late.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// Listens, and passes on what it hears, both ways.
pub struct Wire {
    address: SocketAddr,
    held: watch::Sender<bool>,
    delayed: Arc<Mutex<Vec<u8>>>,
    runtime: Option<Runtime>,
}

impl Wire {
    /// A wire to whoever listens at `target` (host and port).
    pub fn to(target: &str) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("threads can be had");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        listener.set_nonblocking(true).expect("it is a socket");
        let address = listener.local_addr().expect("it is bound");
        let (held, delayed) = (watch::Sender::new(false), Arc::default());
        let pass = Pass {
            held: held.subscribe(),
            delayed: Arc::clone(&delayed),
        };
        runtime.spawn(accept(listener, target.to_owned(), pass));
        Self {
            address,
            held,
            delayed,
            runtime: Some(runtime),
        }
    }

    /// Where it listens, `http://…`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Keeps back what is sent to the target from now on. Answers still come through.
    pub fn hold(&self) {
        self.held.send_replace(true);
    }

    /// What is kept back.
    pub fn delayed(&self) -> Vec<u8> {
        self.delayed.lock().clone()
    }

    /// Delivers what was kept back, late, and everything after it in time.
    pub fn release(&self) {
        self.held.send_replace(false);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[derive(Clone)]
struct Pass {
    held: watch::Receiver<bool>,
    delayed: Arc<Mutex<Vec<u8>>>,
}

async fn accept(listener: std::net::TcpListener, target: String, pass: Pass) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (near, _) = listener.accept().await?;
        let Ok(far) = TcpStream::connect(&target).await else {
            continue;
        };
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let ((near_in, mut near_out), (mut far_in, far_out)) =
            (near.into_split(), far.into_split());
        tokio::spawn(pass.clone().forward(near_in, far_out));
        tokio::spawn(async move { tokio::io::copy(&mut far_in, &mut near_out).await });
    }
}

impl Pass {
    async fn forward(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> io::Result<()> {
        let mut waiting = Vec::new();
        let mut chunk = vec![0; 64 << 10];
        loop {
            let held = *self.held.borrow_and_update();
            if !held && !waiting.is_empty() {
                self.delayed.lock().clear();
                to.write_all(&waiting).await?;
                waiting.clear();
            }
            tokio::select! {
                read = from.read(&mut chunk) => match read? {
                    0 => return to.shutdown().await,
                    size => waiting.extend_from_slice(&chunk[..size]),
                },
                changed = self.held.changed() => if changed.is_err() { return Ok(()) },
            }
            if *self.held.borrow() {
                let mut delayed = self.delayed.lock();
                waiting.clone_into(&mut delayed);
            }
        }
    }
}
