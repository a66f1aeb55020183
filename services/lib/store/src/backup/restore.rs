//! Writes the keys of a snapshot into an empty store.

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use setpoint_codec::kind_of;
use setpoint_proto::coordination::Lease;

use super::{Error, Snapshot};
use crate::{Range, Store, Term, Write, bumped, keys};

/// The number by which revisions are raised above those of the lost store: as etcd's tools are told for Kubernetes,
/// more than any store can have written since the snapshot.
const REVISIONS: u64 = 1_000_000_000;
/// The number by which terms of leases are raised: more than there can have been elections since the snapshot.
const TERMS: u64 = 1_000_000;
/// The number of writes in flight.
const IN_FLIGHT: usize = 32;
/// The choice of keys that are restored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether to leave out the keys that sign tokens of ServiceAccounts, so that gateways make a new one and refuse
    /// all tokens from before.
    pub new_token_keys: bool,
}

/// The outcome of a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// The number of objects that were written.
    pub objects: usize,
    /// The number of Leases that were left out.
    pub leases: usize,
}

/// Writes the keys of a snapshot that are of objects or of Setpoint into a store without any. Calls `progress` with the
/// number of keys so far.
///
/// Gateways must not run over the store before it has ended: they serve nothing until then.
///
/// # Errors
/// The store has keys, does not answer, or refuses a write; or the snapshot cannot be read. The store is to be emptied
/// then: what was written is a part, and gateways refuse to serve it.
pub async fn restore(
    store: &dyn Store,
    snapshot: &Snapshot,
    options: Options,
    mut progress: impl FnMut(usize),
) -> Result<Restored, Error> {
    let bump = snapshot.revision()?.raw().saturating_add(REVISIONS);
    let past_term = highest_term(snapshot)?.saturating_add(TERMS);
    for root in [keys::ROOT, keys::OWN] {
        refuse_content(store, root).await?;
    }
    let begun = Write::create(keys::REVISION_BUMP, bumped::UNFINISHED.into());
    let begun = store.commit(begun).await?;
    let keys = snapshot.keys().filter(|key| is_restored(key, options));
    let keys: Vec<_> = keys.map(str::to_owned).collect();
    let writes = keys.into_iter().map(|key| write(store, snapshot, key));
    let mut writes = stream::iter(writes).buffer_unordered(IN_FLIGHT);
    let mut written = 0;
    while writes.try_next().await?.is_some() {
        written += 1;
        progress(written);
    }
    drop(writes);
    let term = Write::create(keys::PAST_TERM, past_term.to_string().into());
    store.commit(term).await?;
    // Last: it lets gateways serve.
    let ended = Write::update(keys::REVISION_BUMP, begun, bump.to_string().into());
    store.commit(ended).await?;
    let count = |begin: &str| snapshot.keys().filter(|key| key.starts_with(begin)).count();
    let leases = count(&leases());
    Ok(Restored {
        objects: count(keys::ROOT) - leases,
        leases,
    })
}

async fn write(store: &dyn Store, snapshot: &Snapshot, key: String) -> Result<(), Error> {
    let value = snapshot.value(&key)?.unwrap_or_default();
    store.commit(Write::create(key, value)).await?;
    Ok(())
}

async fn refuse_content(store: &dyn Store, prefix: &str) -> Result<(), Error> {
    let range = Range {
        limit: 1,
        keys_only: true,
        ..Range::all(prefix)
    };
    match store.list(range).await?.entries.into_iter().next() {
        Some(found) => Err(Error::NotEmpty(found.key)),
        None => Ok(()),
    }
}

/// Whether a key is restored as it is.
fn is_restored(key: &str, options: Options) -> bool {
    let is_ours = key.starts_with(keys::ROOT) || key.starts_with(keys::OWN);
    let is_raised = [keys::REVISION_BUMP, keys::PAST_TERM].contains(&key);
    let is_left_out = key.starts_with(&leases()) || key.starts_with(keys::TERMS);
    let is_token_key = [keys::TOKEN_KEY, keys::TOKEN_KEYS].contains(&key);
    let is_replaced = is_token_key && options.new_token_keys;
    is_ours && !(is_raised || is_left_out || is_replaced)
}

/// Returns the prefix of the keys of Leases, which are not restored.
fn leases() -> String {
    keys::prefix(kind_of::<Lease>(), "")
}

/// Returns the highest term of any Lease, of those that were deleted, too.
fn highest_term(snapshot: &Snapshot) -> Result<u64, Error> {
    let is_term = |key: &&str| key.starts_with(keys::TERMS) || *key == keys::PAST_TERM;
    let mut terms = snapshot.keys().filter(is_term).map(|key| {
        let value = snapshot.value(key)?.unwrap_or_default();
        // A value that is no term, which something else has written, was never in use.
        Ok(Term::read(&value).unwrap_or_default())
    });
    terms.try_fold(
        0,
        |highest, term: Result<u64, Error>| Ok(highest.max(term?)),
    )
}
