//! Clients of Services.

use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_tests::eventually;

/// The time that a connection may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connects, and returns what the server sends.
pub fn ask(at: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.is_empty() {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(answer),
    }
}

/// A client that asks all the time.
pub struct Load {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    failed: Arc<Mutex<Vec<String>>>,
    thread: JoinHandle<()>,
}

impl Load {
    /// Starts to ask at an address, some hundred times a second.
    pub fn start(at: SocketAddr) -> Self {
        let (stop, count) = <(Arc<AtomicBool>, Arc<AtomicUsize>)>::default();
        let failed = Arc::<Mutex<Vec<String>>>::default();
        let (stopping, counted, noted) =
            (Arc::clone(&stop), Arc::clone(&count), Arc::clone(&failed));
        let thread = thread::spawn(move || {
            while !stopping.load(Ordering::Relaxed) {
                counted.fetch_add(1, Ordering::Relaxed);
                if let Err(error) = ask(at) {
                    noted.lock().push(error.to_string());
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        Self {
            stop,
            count,
            failed,
            thread,
        }
    }

    /// Returns the number of requests that have failed so far.
    pub fn failures(&self) -> usize {
        self.failed.lock().len()
    }

    /// Returns the errors so far.
    pub fn errors(&self) -> Vec<String> {
        self.failed.lock().clone()
    }

    /// Waits for further requests.
    pub fn goes_on(&self) {
        let before = self.count.load(Ordering::Relaxed);
        eventually("requests go on", || {
            let now = self.count.load(Ordering::Relaxed);
            (now > before + 50).then_some(()).ok_or(now.to_string())
        });
    }

    /// Stops, and returns the number of requests and the errors of those that failed.
    pub fn end(self) -> (usize, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        let failed = self.failed.lock().clone();
        (self.count.load(Ordering::Relaxed), failed)
    }
}
