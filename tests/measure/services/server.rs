//! The servers of the Pod: one that sends back what it gets, and one that reads.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::network::{Network, POD};

/// The length of a request, and of its answer.
pub const MESSAGE: usize = 64;
/// The number of bytes that are read at once.
const BLOCK: usize = 128 << 10;

/// Servers, which run until the process ends.
pub struct Server {
    /// Answers each message with the same.
    pub echo: SocketAddr,
    /// Reads all that comes.
    pub sink: SocketAddr,
}

impl Server {
    /// Starts both in the network of the Pod, on ports of the kernel's choice.
    pub fn start(network: &Network) -> anyhow::Result<Self> {
        let listen = || Ok(TcpListener::bind((POD, 0))?);
        let (echo, sink) = (network.enter(listen)?, network.enter(listen)?);
        Ok(Self {
            echo: serve(echo, answer)?,
            sink: serve(sink, read)?,
        })
    }
}

fn serve(listener: TcpListener, each: fn(TcpStream)) -> anyhow::Result<SocketAddr> {
    let at = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || each(stream));
        }
    });
    Ok(at)
}

/// Ends with the connection, whichever way that does.
fn answer(mut stream: TcpStream) {
    let mut message = [0; MESSAGE];
    let _ = stream.set_nodelay(true);
    while stream.read_exact(&mut message).is_ok() && stream.write_all(&message).is_ok() {}
}

fn read(mut stream: TcpStream) {
    let mut block = vec![0; BLOCK];
    while stream.read(&mut block).is_ok_and(|length| length > 0) {}
}
