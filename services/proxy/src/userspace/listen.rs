//! The sockets at which connections are accepted.

use std::fmt;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::str::FromStr;

use socket2::{Domain, Protocol as Transport, Socket, Type};

use crate::Protocol;

/// The number of connections that wait to be accepted, if `net.core.somaxconn` allows it: those of some seconds, in
/// which a process that has ended is started again.
const BACKLOG: i32 = 4096;

/// The name of a socket: its protocol and address, written `tcp/127.96.0.10:80`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listen {
    /// The protocol.
    pub protocol: Protocol,
    /// The address and port.
    pub at: SocketAddrV4,
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.protocol.name(), self.at)
    }
}

impl FromStr for Listen {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        let (protocol, at) = text.split_once('/').ok_or(io::ErrorKind::InvalidInput)?;
        let at = at.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
        let protocol = Protocol::of(&protocol.to_uppercase());
        let protocol = protocol.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self { protocol, at })
    }
}

impl Listen {
    /// Opens the socket, which does not block.
    ///
    /// # Errors
    /// The system's, such as of an address that is taken; `Unsupported` for SCTP.
    pub fn open(self) -> io::Result<OwnedFd> {
        let (kind, transport) = match self.protocol {
            Protocol::Tcp => (Type::STREAM, Transport::TCP),
            Protocol::Udp => (Type::DGRAM, Transport::UDP),
            Protocol::Sctp => return Err(io::ErrorKind::Unsupported.into()),
        };
        let socket = Socket::new(Domain::IPV4, kind, Some(transport))?;
        socket.set_nonblocking(true)?;
        if self.protocol == Protocol::Tcp {
            // Connections that have ended do not keep the address.
            socket.set_reuse_address(true)?;
        }
        socket.bind(&self.at.into())?;
        if self.protocol == Protocol::Tcp {
            socket.listen(BACKLOG)?;
        }
        Ok(socket.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["tcp/127.96.0.10:80", "udp/192.0.2.1:30053"] {
            assert_eq!(name.parse::<Listen>().unwrap().to_string(), name);
        }
        for wrong in ["tcp", "tcp/127.0.0.1", "ip/127.0.0.1:80", ""] {
            wrong.parse::<Listen>().unwrap_err();
        }
    }

    #[test]
    fn an_address_that_is_taken_is_an_error() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = taken.local_addr().unwrap().to_string();
        let listen: Listen = format!("tcp/{at}").parse().unwrap();
        let error = listen.open().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let free: Listen = format!("udp/{at}").parse().unwrap();
        free.open().unwrap();
    }
}
