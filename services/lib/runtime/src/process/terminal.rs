//! Pseudoterminals of commands.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use bytes::Bytes;
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::streams::CHUNK;

/// The agent's end of a pseudoterminal.
pub struct Terminal(AsyncFd<OwnedFd>);

impl Terminal {
    /// Opens a pseudoterminal; returns the agent's end and the command's.
    #[allow(
        deprecated,
        reason = "`AsyncFd::new` is unsound only for descriptors that others may close; this one is owned"
    )]
    pub fn open() -> io::Result<(Self, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = openpt(flags)?;
        grantpt(&terminal)?;
        unlockpt(&terminal)?;
        let peer = ioctl_tiocgptpeer(&terminal, flags)?;
        rustix::io::ioctl_fionbio(&terminal, true)?;
        Ok((Self(AsyncFd::new(terminal)?), peer))
    }

    /// Reads the next output; empty at the end, when no process has the terminal open.
    pub async fn read(&self) -> io::Result<Bytes> {
        let mut buffer = vec![0; CHUNK];
        let read = |terminal: &OwnedFd| match rustix::io::read(terminal, &mut buffer[..]) {
            Err(Errno::IO) => Ok(0),
            read => Ok(read?),
        };
        let length = self.0.async_io(Interest::READABLE, read).await?;
        buffer.truncate(length);
        Ok(buffer.into())
    }

    /// Writes all of the input.
    pub async fn write_all(&self, mut input: Bytes) -> io::Result<()> {
        while !input.is_empty() {
            let write = |terminal: &OwnedFd| Ok(rustix::io::write(terminal, &input)?);
            let length = self.0.async_io(Interest::WRITABLE, write).await?;
            drop(input.split_to(length));
        }
        Ok(())
    }

    /// Sets the size, and notifies the foreground process.
    pub fn resize(&self, columns: u16, rows: u16) -> io::Result<()> {
        let size = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        Ok(tcsetwinsize(self.0.as_fd(), size)?)
    }
}
