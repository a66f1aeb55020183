//! The sockets that a parent keeps.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use super::link::{Link, Message};
use crate::userspace::Listen;

/// The largest number of sockets.
const MAX: usize = 65_536;

/// The sockets by name, and whether the child that runs has asked for them.
#[derive(Debug, Default)]
pub struct Held {
    sockets: HashMap<Listen, (OwnedFd, bool)>,
}

impl Held {
    /// Forgets what the last child has asked for.
    pub fn began(&mut self) {
        self.sockets
            .values_mut()
            .for_each(|(_, asked)| *asked = false);
    }

    /// Answers a message of the child.
    ///
    /// # Errors
    /// If the answer cannot be sent.
    pub fn answer(&mut self, message: Message, link: &Link) -> io::Result<()> {
        match message {
            Message::Open(listen) => self.open(listen, link),
            Message::Close(listen) => {
                self.sockets.remove(&listen);
                Ok(())
            }
            Message::Sweep => {
                self.sockets.retain(|_, (_, asked)| *asked);
                Ok(())
            }
            Message::Opened | Message::Failed(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn open(&mut self, listen: Listen, link: &Link) -> io::Result<()> {
        if !self.sockets.contains_key(&listen) {
            match self.create(listen) {
                Ok(socket) => drop(self.sockets.insert(listen, (socket, true))),
                Err(errno) => return link.send(&Message::Failed(errno), None),
            }
        }
        let Some((socket, asked)) = self.sockets.get_mut(&listen) else {
            return Ok(());
        };
        *asked = true;
        link.send(&Message::Opened, Some(socket.as_fd()))
    }

    /// Opens a socket, or returns the number of the system's error.
    fn create(&self, listen: Listen) -> Result<OwnedFd, i32> {
        use rustix::io::Errno;
        if self.sockets.len() >= MAX {
            return Err(Errno::MFILE.raw_os_error());
        }
        let unsupported = Errno::PROTONOSUPPORT.raw_os_error();
        listen
            .open()
            .map_err(|error| error.raw_os_error().unwrap_or(unsupported))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Asks for a socket, and returns the answer.
    fn ask(held: &mut Held, message: &str) -> (Message, Option<OwnedFd>) {
        let (parent, child) = Link::pair().unwrap();
        let child = Link::new(child).unwrap();
        child.send(&message.parse().unwrap(), None).unwrap();
        let (message, _) = parent.receive().unwrap().unwrap();
        held.answer(message, &parent).unwrap();
        drop(parent);
        child.receive().unwrap().unwrap()
    }

    #[test]
    fn a_socket_is_the_same_for_the_next_child_until_it_is_closed() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = free.local_addr().unwrap();
        let open = format!("open tcp/{at}");
        let mut held = Held::default();
        let taken = rustix::io::Errno::ADDRINUSE.raw_os_error();
        assert_eq!(ask(&mut held, &open).0, Message::Failed(taken));
        drop(free);
        drop(ask(&mut held, &open));
        // Between the children, connections wait.
        let waiting = TcpStream::connect(at).unwrap();
        held.began();
        let (_, socket) = ask(&mut held, &open);
        let listener = TcpListener::from(socket.unwrap());
        let (_, peer) = listener.accept().unwrap();
        assert_eq!(peer, waiting.local_addr().unwrap());
        drop(listener);
        let (link, _child) = Link::pair().unwrap();
        held.answer(Message::Sweep, &link).unwrap();
        TcpStream::connect(at).unwrap();
        held.began();
        held.answer(Message::Sweep, &link).unwrap();
        TcpStream::connect(at).unwrap_err();
    }

    #[test]
    fn the_end_of_the_other_side_is_seen() {
        let (parent, child) = Link::pair().unwrap();
        drop(child);
        assert!(parent.receive().unwrap().is_none());
        let error = parent.send(&Message::Sweep, None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
