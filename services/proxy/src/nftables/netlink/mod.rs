//! Transactions over netlink, the kernel's own interface of nftables.
//!
//! 2026-11: we chose messages of our own over the program `nft`, which reads all sets of the table before it changes
//! one element: of 10 000 Services, one more took 40 ms. The crates we looked at wrap a library of C (`nftnl`) or the
//! JSON of that program (`nftables`), or are under the GPL (`rustables`). Wrong if one without these comes, with
//! concatenated keys, random numbers and updates of sets.

mod command;
mod expression;
mod message;
mod set;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::{NETFILTER, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
    sockopt,
};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::transaction::Transaction;
use message::{Batch, Ending, error_of};

/// The length of a command in an error.
const SHOWN: usize = 300;
/// Room for the start of an answer, which has all that is read of it.
const ANSWER: usize = 1024;

/// A transaction that was not made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel has refused a command.
    #[error("the kernel refuses \"{command}\": {source}")]
    Refused {
        /// Its first words.
        command: String,
        /// The reason.
        source: io::Error,
    },
    /// The transaction could not be handed to the kernel.
    #[error("cannot send a transaction to the kernel: {0}")]
    Send(io::Error),
    /// The kernel has not answered in time. It may still make the transaction.
    #[error("a transaction has not ended after {0:?}")]
    Timeout(Duration),
}

/// A socket of the kernel's nftables, for the network in which it was opened.
#[derive(Clone, Debug)]
pub struct Socket {
    descriptor: Arc<OwnedFd>,
    /// Held while the kernel works: it makes one transaction at a time.
    turn: Arc<Mutex<()>>,
}

impl Socket {
    /// Opens a socket for the network of this thread.
    ///
    /// # Errors
    /// Those of the system, for example if the kernel has no netfilter. Whether this process has the right to change
    /// anything shows in the first transaction.
    pub fn open() -> io::Result<Self> {
        let kind = SocketType::RAW;
        let socket = socket_with(
            AddressFamily::NETLINK,
            kind,
            SocketFlags::CLOEXEC,
            Some(NETFILTER),
        )?;
        connect(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(Self {
            descriptor: Arc::new(socket),
            turn: Arc::default(),
        })
    }

    /// Makes a transaction.
    ///
    /// # Errors
    /// If the kernel refuses it, or takes longer than `limit`. It makes such a transaction all the same, and the next
    /// one after that.
    pub async fn commit(&self, transaction: &Transaction, limit: Duration) -> Result<(), Error> {
        self.execute(transaction, Ending::Commit, limit).await
    }

    /// Checks a transaction, which is not made.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub async fn check(&self, transaction: &Transaction, limit: Duration) -> Result<(), Error> {
        self.execute(transaction, Ending::Abort, limit).await
    }

    async fn execute(
        &self,
        transaction: &Transaction,
        ending: Ending,
        limit: Duration,
    ) -> Result<(), Error> {
        let batch = Batch::of(transaction, ending).map_err(Error::Send)?;
        let (descriptor, turn) = (Arc::clone(&self.descriptor), Arc::clone(&self.turn));
        let work = async {
            let turn = turn.lock_owned().await;
            let exchange = spawn_blocking(move || {
                let outcome = exchange(&descriptor, &batch);
                drop(turn);
                outcome
            });
            exchange
                .await
                .unwrap_or_else(|error| Err(io::Error::other(error)))
        };
        match timeout(limit, work).await {
            Ok(Ok(None)) => Ok(()),
            Ok(Ok(Some((number, errno)))) => Err(Error::Refused {
                command: words(transaction, number),
                source: errno.into(),
            }),
            Ok(Err(error)) => Err(Error::Send(error)),
            Err(_) => Err(Error::Timeout(limit)),
        }
    }
}

/// Returns the first words of the command with this number; those of the whole transaction without one.
fn words(transaction: &Transaction, number: Option<usize>) -> String {
    let command = number.and_then(|number| transaction.commands.get(number));
    let text = command.map_or_else(
        || format!("the transaction of the table {}", transaction.table),
        |command| transaction.text(command),
    );
    text.chars().take(SHOWN).collect()
}

/// The first error, with the number of its command.
type Refusal = Option<(Option<usize>, Errno)>;

/// Sends a batch. The kernel has worked it off, and has answered, when the call returns.
fn exchange(socket: &OwnedFd, batch: &[u8]) -> io::Result<Refusal> {
    // It is one message to the kernel, however long it is.
    sockopt::set_socket_send_buffer_size_force(socket, batch.len())?;
    send(socket, batch, SendFlags::empty())?;
    let (mut buffer, mut first) = ([0; ANSWER], None);
    loop {
        match recv(socket, &mut buffer, RecvFlags::DONTWAIT) {
            Ok((length, _)) => first = first.or(error_of(buffer.get(..length).unwrap_or_default())),
            Err(Errno::AGAIN) => return Ok(first),
            // More errors than there is room for; those that fit come next.
            Err(Errno::NOBUFS) => {}
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
