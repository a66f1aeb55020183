//! Copies the bytes of a connection, through a pipe in the kernel where that is possible.
//!
//! A direction holds a pipe only from the first byte of a burst to the last: an idle connection has none.

use std::io;
use std::os::fd::OwnedFd;

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

use prometheus::IntCounter;

/// The capacity of a pipe in bytes, as the kernel makes them, and of a buffer.
const CAPACITY: usize = 64 * 1024;
/// The number of idle pipes that are kept for further bursts.
const IDLE: usize = 64;

/// The pipes that are not in use, all of them empty.
#[derive(Debug, Default)]
pub struct Pipes {
    idle: Mutex<Vec<Pipe>>,
}

#[derive(Debug)]
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// The carrier of the bytes of a burst.
enum Carrier {
    Pipe(Pipe),
    /// For where there is no further pipe, or none can be used.
    Buffer(Vec<u8>),
}

impl Pipes {
    fn take(&self) -> Carrier {
        if let Some(pipe) = self.idle.lock().pop() {
            return Carrier::Pipe(pipe);
        }
        match pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK) {
            Ok((read, write)) => Carrier::Pipe(Pipe { read, write }),
            Err(_) => Carrier::buffer(),
        }
    }

    fn give_back(&self, carrier: Carrier) {
        let mut idle = self.idle.lock();
        if let Carrier::Pipe(pipe) = carrier
            && idle.len() < IDLE
        {
            idle.push(pipe);
        }
    }
}

impl Carrier {
    fn buffer() -> Self {
        Self::Buffer(vec![0; CAPACITY])
    }

    /// Takes bytes out of a connection, and returns their number, 0 at its end.
    fn fill(&mut self, from: &TcpStream) -> io::Result<usize> {
        let pipe = match self {
            Self::Buffer(buffer) => return from.try_read(buffer),
            Self::Pipe(pipe) => pipe,
        };
        let filled = from.try_io(Interest::READABLE, || {
            let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
            let filled = splice(from, None, &pipe.write, None, CAPACITY, flags);
            filled.map_err(io::Error::from)
        });
        match filled {
            Err(error) if is_refused(&error) => {
                *self = Self::buffer();
                self.fill(from)
            }
            filled => filled,
        }
    }

    /// Puts `count` bytes into a connection.
    async fn drain(&mut self, to: &TcpStream, count: usize) -> io::Result<()> {
        let mut done = 0;
        while done < count {
            to.writable().await?;
            let put = match self {
                Self::Buffer(buffer) => to.try_write(buffer.get(done..count).unwrap_or_default()),
                Self::Pipe(pipe) => to.try_io(Interest::WRITABLE, || {
                    let (left, flags) = (count - done, SpliceFlags::MOVE | SpliceFlags::NONBLOCK);
                    let put = splice(&pipe.read, None, to, None, left, flags);
                    put.map_err(io::Error::from)
                }),
            };
            match put {
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether sockets cannot be spliced here, as in some sandboxes.
fn is_refused(error: &io::Error) -> bool {
    [Errno::INVAL, Errno::NOSYS, Errno::PERM]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Copies one direction of a connection until its end, which is passed on. Counts bytes.
///
/// # Errors
/// If either side fails.
pub async fn copy(
    from: &TcpStream,
    to: &TcpStream,
    pipes: &Pipes,
    count: &IntCounter,
) -> io::Result<()> {
    loop {
        from.readable().await?;
        let mut carrier = pipes.take();
        let has_ended = burst(&mut carrier, from, to, count).await?;
        pipes.give_back(carrier);
        if has_ended {
            break;
        }
    }
    match shutdown(to, Shutdown::Write) {
        // The other side has ended both directions meanwhile.
        Err(Errno::NOTCONN) => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Copies what is there, and returns whether the connection has ended.
async fn burst(
    carrier: &mut Carrier,
    from: &TcpStream,
    to: &TcpStream,
    count: &IntCounter,
) -> io::Result<bool> {
    loop {
        match carrier.fill(from) {
            Ok(0) => return Ok(true),
            Ok(bytes) => {
                carrier.drain(to, bytes).await?;
                count.inc_by(bytes.try_into().unwrap_or_default());
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = listener.local_addr().unwrap();
        let (one, other) = tokio::join!(TcpStream::connect(to), listener.accept());
        (one.unwrap(), other.unwrap().0)
    }

    /// Copies `bytes` with either carrier, and returns what arrives.
    async fn carried(mut carrier: Carrier, bytes: &[u8]) -> Vec<u8> {
        let ((mut client, from), (to, mut endpoint)) = (pair().await, pair().await);
        let count = IntCounter::new("bytes", "Bytes.").unwrap();
        let send = async {
            client.write_all(bytes).await.unwrap();
            client.shutdown().await.unwrap();
        };
        let copy = async {
            while {
                from.readable().await.unwrap();
                !burst(&mut carrier, &from, &to, &count).await.unwrap()
            } {}
            drop(to);
        };
        let mut arrived = Vec::new();
        let receive = endpoint.read_to_end(&mut arrived);
        let ((), (), received) = tokio::join!(send, copy, receive);
        received.unwrap();
        assert_eq!(count.get(), bytes.len() as u64);
        arrived
    }

    #[tokio::test]
    async fn bytes_arrive_as_they_were_sent() {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        assert!(carried(Pipes::default().take(), &bytes).await == bytes);
        assert!(carried(Carrier::buffer(), &bytes).await == bytes);
    }

    #[tokio::test]
    async fn the_end_of_one_direction_leaves_the_other_and_a_pipe_is_used_again() {
        let ((mut client, from), (to, mut endpoint)) = (pair().await, pair().await);
        let (pipes, count) = (Pipes::default(), IntCounter::new("b", "Bytes.").unwrap());
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        copy(&from, &to, &pipes, &count).await.unwrap();
        let mut question = String::new();
        endpoint.read_to_string(&mut question).await.unwrap();
        endpoint.write_all(b"answer").await.unwrap();
        drop(endpoint);
        copy(&to, &from, &pipes, &count).await.unwrap();
        drop((from, to));
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!((&*question, &*answer), ("question", "answer"));
        assert_eq!(pipes.idle.lock().len(), 1);
    }
}
