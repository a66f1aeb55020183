//! An HTTP server with metrics that a test sets.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

/// The time limit of a request.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// A running server; it ends with this value.
pub struct Exporter {
    address: SocketAddr,
    text: Arc<Mutex<String>>,
    ends: Arc<AtomicBool>,
}

impl Exporter {
    /// Starts one on a free port of the loopback, without metrics.
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let exporter = Self {
            address: listener.local_addr().expect("it is bound"),
            text: Arc::default(),
            ends: Arc::default(),
        };
        let (text, ends) = (exporter.text.clone(), exporter.ends.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::Acquire) {
                    return;
                }
                let text = text.lock().clone();
                // Whoever asked and went away asks again.
                let _ = stream.and_then(|stream| answer(stream, &text));
            }
        });
        exporter
    }

    /// Returns its address, `<host>:<port>`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Sets its metrics, in Prometheus' text format.
    pub fn set(&self, text: impl Into<String>) {
        *self.text.lock() = text.into();
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        // Wakes the thread, which may wait for a connection.
        drop(TcpStream::connect(self.address));
    }
}

/// Answers the one request of a connection, whatever it asks for.
fn answer(mut stream: TcpStream, text: &str) -> std::io::Result<()> {
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    let (mut request, mut part) = (Vec::new(), [0; 1024]);
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut part)? {
            0 => return Ok(()),
            length => request.extend_from_slice(&part[..length]),
        }
    }
    let length = text.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}
