//! Backups: snapshots of etcd that are checked when they are made and before they are restored, and the way back into
//! an empty etcd.
//!
//! A backup is the file that `etcdctl snapshot save` writes, so that etcd's own tools can restore it, too.
//!
//! # What a restore changes
//!
//! * **Revisions go on** above all that the lost store may have given out ([`Bumped`](crate::Bumped)). A client that
//!   resumes a watch or a list from before gets `Expired`, never the state of another history.
//! * **Leases are left out**, and the first terms after it are above all that any leader may have had
//!   ([`keys::PAST_TERM`](crate::keys::PAST_TERM)). So no fence of a former leader matches again.
//! * The keys that sign tokens of ServiceAccounts can be left out. Tokens that they have signed are refused then.
//!
//! # Decisions
//!
//! * 2026-11: we chose to write the keys of a snapshot into a new etcd over giving etcd a data directory made of it,
//!   because that needs a tool of etcd's that packages of etcd 3.4 do not have, and which raises revisions in etcd 3.6
//!   only. Wrong if a store is so large that its keys take minutes to write.

mod bolt;
mod restore;
mod save;
mod snapshot;

use std::io;

pub use restore::{Options, Restored, restore};
pub use save::save;
pub use snapshot::{Contents, Snapshot};

/// An error of a backup or a restore.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is not a whole snapshot of etcd.
    #[error("the file is not a snapshot of etcd, or is damaged: {0}")]
    Damaged(String),
    /// The snapshot was taken during a restore, or after one that failed.
    #[error("the snapshot is of a store whose restore has not ended")]
    Unfinished,
    /// The store to restore into has objects already.
    #[error("the store is not empty: it has the key {0:?}; restore into an etcd without data")]
    NotEmpty(String),
    /// The store did not answer, or has refused a write.
    #[error(transparent)]
    Store(#[from] crate::Error),
}
