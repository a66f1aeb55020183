//! Where objects are kept: the port, its adapter to etcd, and the cache that answers reads and watches.
//!
//! Every write is of one object, conditional, and has a revision of its own: so a revision is a cursor.

pub mod cache;
mod entry;
mod error;
pub mod etcd;
pub mod keys;
mod write;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use setpoint_model::Revision;

pub use entry::{Batch, Change, Entry, Page, Range};
pub use error::Error;
pub use write::{Expect, Fence, Term, Witness, Write};

/// What can be asked of a store. There is nothing else that Setpoint does with etcd.
///
/// Its history is one line: each committed write has its own revision, and readers agree on the order.
pub trait Store: Send + Sync + 'static {
    /// The entry under `key`, linearizable: not older than any write that was acknowledged before the call.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, Error>>;

    /// The entry under `key` as it stood at a revision of the past; [`Error::Expired`] when the history does not
    /// reach there.
    fn get_at<'a>(
        &'a self,
        key: &'a str,
        at: Revision,
    ) -> BoxFuture<'a, Result<Option<Entry>, Error>>;

    /// One page of a prefix in key order, at one revision: `range.at`, or the newest (linearizable).
    fn list(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>>;

    /// Writes if the key is as expected, and every lease term and witness still stands; returns the write's revision.
    ///
    /// Once begun it is seen through, even if the caller goes away. An outcome that got lost is looked up;
    /// what cannot be known is [`Error::Unknown`], never a guess.
    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Error>>;

    /// The newest revision, linearizable.
    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>>;

    /// Every revision after this one, each once, whole, in order. It ends with an error, never silently;
    /// whoever follows the store then watches again from the last revision that it got.
    fn watch(&self, after: Revision) -> BoxStream<'static, Result<Batch, Error>>;
}
