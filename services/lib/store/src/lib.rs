//! The store of API objects: the port [`Store`], its adapter to [etcd], an implementation in memory, and the watch
//! [cache] that answers reads and watches.
//!
//! Each write is conditional, concerns one object and has a revision of its own. A revision is therefore a cursor
//! into the history.
//!
//! A change has these forms on its way from etcd to a client:
//!
//! | form | where | content, and why it differs from the one before |
//! |---|---|---|
//! | [`Batch`] of [`Change`]s | the port | the encoded puts and deletions of one revision; a revision is applied as a whole |
//! | `DecodedChange` | the cache | one of them, decoded outside of the cache's lock |
//! | `Record` | the log | the version before and after, from which the filter of each watcher derives its event |
//! | [`Event`](cache::Event) | a watch | the event of one watcher, with the shared [`Cached`](cache::Cached); HTTP and gRPC frame it |
//! | `WatchEvent` | `setpoint-proto` | the message between gateway and informer |
//! | `Delta` | informers | the views before and after, so that handlers wake the former and the new owner |
//!
//! Values may be [encrypted](Encrypted); the cache and everything above it see them in plain text.
//!
//! # Decisions
//!
//! * 2026-11: we chose Kubernetes' keys and protobuf values over a layout of our own, because its tools can read and
//!   repair such a store, and a cluster can be moved. Wrong if a query had to be answered by etcd that these keys
//!   cannot.

pub mod backup;
mod bumped;
pub mod cache;
#[cfg(feature = "contract")]
pub mod contract;
mod encrypted;
mod entry;
mod error;
pub mod etcd;
pub mod keys;
mod memory;
mod outcome;
mod write;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use setpoint_model::Revision;

pub use bumped::Bumped;
pub use encrypted::Encrypted;
pub use entry::{Batch, Change, Entry, Form, KeyChange, Page, Range};
pub use error::Error;
pub use memory::Memory;
pub use setpoint_model::Fence;
pub use write::{Expect, Precondition, Term, Write};

/// A store of entries with a history: all that Setpoint needs of etcd.
///
/// The history is linear: each committed write has its own revision, and all readers see the same order.
pub trait Store: Send + Sync + 'static {
    /// Reads the entry at `key`. The read is linearizable: it sees every write acknowledged before the call.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, Error>>;

    /// Reads the entry at `key` as of revision `at`.
    ///
    /// Fails with [`Error::Expired`] if the history does not include that revision.
    fn get_at<'a>(
        &'a self,
        key: &'a str,
        at: Revision,
    ) -> BoxFuture<'a, Result<Option<Entry>, Error>>;

    /// Reads one page of a prefix in key order, at one revision: `range.at`, or else the newest (linearizable).
    fn list(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>>;

    /// Commits a write if its key is as expected and its fence, term and preconditions hold; returns its revision.
    ///
    /// A write that was begun is completed even if the returned future is dropped. If the response is lost, the
    /// outcome is read from the history of the key; it is [`Error::Unknown`] if that does not decide it.
    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Error>>;

    /// Reads the newest revision. The read is linearizable.
    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>>;

    /// Returns a stream of every revision after `after`: each once, whole, in order.
    ///
    /// The stream ends with an error, never without one. To continue, call `watch` with the last revision received.
    fn watch(&self, after: Revision) -> BoxStream<'static, Result<Batch, Error>>;

    /// Returns a stream of every change of one key after `after`, in order. It ends as that of [`watch`](Self::watch)
    /// does.
    fn watch_key(&self, key: &str, after: Revision)
    -> BoxStream<'static, Result<KeyChange, Error>>;
}
