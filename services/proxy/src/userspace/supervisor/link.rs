//! The link between parent and child: messages of text, some with a socket.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::userspace::Listen;

/// The longest message: a verb and the name of a socket.
const MAX: usize = 64;
/// The time that the other side may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// To the parent: send this socket, and open it first if need be.
    Open(Listen),
    /// To the parent: close this socket.
    Close(Listen),
    /// To the parent: close the sockets that this child has not asked for.
    Sweep,
    /// To the child, with a socket.
    Opened,
    /// To the child: the number of the system's error.
    Failed(i32),
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(listen) => write!(f, "open {listen}"),
            Self::Close(listen) => write!(f, "close {listen}"),
            Self::Sweep => f.write_str("sweep "),
            Self::Opened => f.write_str("opened "),
            Self::Failed(errno) => write!(f, "failed {errno}"),
        }
    }
}

impl FromStr for Message {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        let wrong = || io::Error::from(io::ErrorKind::InvalidData);
        let (verb, of) = text.split_once(' ').ok_or_else(wrong)?;
        match verb {
            "open" => Ok(Self::Open(of.parse()?)),
            "close" => Ok(Self::Close(of.parse()?)),
            "sweep" => Ok(Self::Sweep),
            "opened" => Ok(Self::Opened),
            "failed" => Ok(Self::Failed(of.parse().map_err(|_| wrong())?)),
            _ => Err(wrong()),
        }
    }
}

/// An end of the link, which keeps the bounds of messages.
#[derive(Debug)]
pub struct Link {
    socket: OwnedFd,
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Link {
    /// Returns the end that a socket is.
    ///
    /// # Errors
    /// If it is no socket.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
        Ok(Self { socket })
    }

    /// Returns an end, and the socket of the other one.
    ///
    /// # Errors
    /// The system's.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
        let (one, other) = socketpair(family, SocketType::SEQPACKET, flags, None)?;
        Ok((Self::new(one)?, other))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// `BrokenPipe` if the other end is gone.
    pub fn send(&self, message: &Message, socket: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let text = message.to_string();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let sockets = socket.map(|socket| [socket]);
        if let Some(sockets) = &sockets {
            control.push(SendAncillaryMessage::ScmRights(sockets));
        }
        let text = [IoSlice::new(text.as_bytes())];
        sendmsg(&self.socket, &text, &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Receives a message; `None` at the end.
    ///
    /// # Errors
    /// The system's, `WouldBlock` when the other side takes too long, and of a message that is none.
    pub fn receive(&self) -> io::Result<Option<(Message, Option<OwnedFd>)>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let (mut control, mut text) = (RecvAncillaryBuffer::new(&mut space), [0; MAX]);
        let mut into = [IoSliceMut::new(&mut text)];
        let received = recvmsg(
            &self.socket,
            &mut into,
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        let mut sockets = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
            _ => None,
        });
        let socket = sockets.next();
        drop(sockets);
        if received.bytes == 0 {
            return Ok(None);
        }
        let text = text.get(..received.bytes).unwrap_or_default();
        let text = str::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Some((text.parse()?, socket)))
    }
}
