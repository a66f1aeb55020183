//! Where sockets come from: this process, or its parent, which keeps them while this process is restarted.

use std::io;
use std::os::fd::OwnedFd;

use parking_lot::Mutex;

use super::Listen;
use super::supervisor::link::{Link, Message};

/// The source of sockets.
#[derive(Debug)]
pub enum Sockets {
    /// This process.
    Own,
    /// The parent at the other end of this link.
    Parent(Mutex<Link>),
}

impl Sockets {
    /// Opens a socket, or returns the one that the parent has kept.
    ///
    /// A parent answers within microseconds, but the call blocks.
    ///
    /// # Errors
    /// The system's; `BrokenPipe` without a parent.
    pub fn open(&self, listen: Listen) -> io::Result<OwnedFd> {
        match self {
            Self::Own => listen.open(),
            Self::Parent(link) => {
                let link = link.lock();
                link.send(&Message::Open(listen), None)?;
                match link.receive()? {
                    Some((Message::Opened, Some(socket))) => Ok(socket),
                    Some((Message::Failed(errno), _)) => Err(io::Error::from_raw_os_error(errno)),
                    _ => Err(io::ErrorKind::BrokenPipe.into()),
                }
            }
        }
    }

    /// Lets the parent close its copy of a socket.
    ///
    /// # Errors
    /// `BrokenPipe` without a parent.
    pub fn close(&self, listen: Listen) -> io::Result<()> {
        self.tell(&Message::Close(listen))
    }

    /// Lets the parent close the sockets that this process has not opened since it started.
    ///
    /// # Errors
    /// `BrokenPipe` without a parent.
    pub fn sweep(&self) -> io::Result<()> {
        self.tell(&Message::Sweep)
    }

    fn tell(&self, message: &Message) -> io::Result<()> {
        match self {
            Self::Own => Ok(()),
            Self::Parent(link) => link.lock().send(message, None),
        }
    }
}
