//! The log of all writes to etcd, with their causes, read through a watch from the first revision.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use etcd_client::{EventType, WatchClient, WatchOptions};
use parking_lot::Mutex;
use prost::Message as _;
use setpoint_codec::envelope;
use setpoint_model::Revision;
use setpoint_proto::Cause;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::wait::DEADLINE;
use crate::{Address, eventually};

/// Key at which the gateway records the cause of a deletion, in the same transaction.
const DELETION_CAUSE: &str = "/setpoint/farewell";
/// Size limit of a watch message, which may hold many changes.
const MESSAGE_MAX: usize = 256 << 20;
/// The time within which a whole log must be read.
const READ: Duration = Duration::from_secs(10);
/// Delay before the watch is opened again after an error.
const PAUSE: Duration = Duration::from_millis(100);

/// A put or a deletion of one key.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The revision of the commit.
    pub revision: i64,
    /// When the watch delivered it.
    pub seen: Instant,
    /// The key, for example `/registry/pods/default/web`.
    pub key: String,
    /// The encoded object; `None` for a deletion.
    pub object: Option<Bytes>,
    /// Whether the write created the key.
    pub created: bool,
    /// The recorded cause of the write.
    pub cause: Cause,
    /// The value in etcd, with the envelope.
    pub value: Bytes,
}

/// Follows etcd's log from the first revision until it is dropped. It has a runtime of its own, so that tests need
/// none.
pub struct EtcdLog {
    entries: Arc<Mutex<Vec<Entry>>>,
    etcd: Address,
    runtime: Option<Runtime>,
}

impl EtcdLog {
    /// Starts to follow the etcd at this address.
    pub fn of(etcd: &Address) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("threads can be had");
        let entries = Arc::default();
        runtime.spawn(follow(etcd.clone(), Arc::clone(&entries)));
        Self {
            entries,
            etcd: etcd.clone(),
            runtime: Some(runtime),
        }
    }

    /// Reads all entries committed before the call; `None` if etcd does not answer soon or has compacted them.
    pub fn read(etcd: &Address) -> Option<Vec<Entry>> {
        let read = || {
            let runtime = Builder::new_current_thread().enable_all().build().ok()?;
            let read = async { timeout(READ, read_all(etcd)).await.ok()?.ok() };
            runtime.block_on(read)
        };
        // The caller's thread may have a runtime, which cannot wait for another one.
        std::thread::scope(|scope| scope.spawn(read).join().ok()?)
    }

    /// Returns all entries committed before the call; waits until the watch has delivered them.
    pub fn all(&self) -> Vec<Entry> {
        let now = self.revision();
        eventually("the history is complete", || {
            let last = self.so_far().last().map_or(0, |entry| entry.revision);
            (last >= now)
                .then_some(())
                .ok_or(format!("{last} of {now}"))
        });
        self.so_far()
    }

    /// Returns the entries delivered so far.
    pub fn so_far(&self) -> Vec<Entry> {
        self.entries.lock().clone()
    }

    /// Returns the entries delivered so far and forgets all but the newest, after which the watch resumes, so that a
    /// long history takes no memory. The newest is returned again by the next call.
    pub fn drain(&self) -> Vec<Entry> {
        let mut entries = self.entries.lock();
        let newest = entries.last().cloned();
        std::mem::replace(&mut *entries, newest.into_iter().collect())
    }

    fn revision(&self) -> i64 {
        let (sender, revision) = std::sync::mpsc::channel();
        let etcd = self.etcd.clone();
        let request = async move {
            let mut client = etcd.etcd().await?;
            let answer = client.get("/", None).await?;
            let revision = answer
                .header()
                .map_or(0, etcd_client::ResponseHeader::revision);
            let _ = sender.send(revision);
            Ok::<_, etcd_client::Error>(())
        };
        self.runtime.as_ref().map(|runtime| runtime.spawn(request));
        let answer = revision.recv_timeout(DEADLINE);
        answer.expect("etcd answers")
    }
}

impl Drop for EtcdLog {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Reads the log up to the current revision.
async fn read_all(etcd: &Address) -> Result<Vec<Entry>, etcd_client::Error> {
    let mut client = etcd.etcd().await?;
    let answer = client.get("/", None).await?;
    let now = answer
        .header()
        .map_or(0, etcd_client::ResponseHeader::revision);
    let client = client.watch_client().max_decoding_message_size(MESSAGE_MAX);
    let entries = Mutex::default();
    let complete = |entries: &[Entry]| entries.last().is_some_and(|last| last.revision >= now);
    follow_from(client, 1, &entries, complete).await?;
    Ok(entries.into_inner())
}

/// Follows the log; resumes after the last entry when the connection to etcd is lost.
async fn follow(etcd: Address, entries: Arc<Mutex<Vec<Entry>>>) {
    loop {
        let last = entries.lock().last().map(|entry| entry.revision);
        if let Ok(client) = etcd.etcd().await {
            let next = last.unwrap_or_default() + 1;
            let client = client.watch_client().max_decoding_message_size(MESSAGE_MAX);
            let _ = follow_from(client, next, &entries, |_| false).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Follows the log from a revision until it is `complete`.
async fn follow_from(
    mut client: WatchClient,
    revision: i64,
    entries: &Mutex<Vec<Entry>>,
    complete: impl Fn(&[Entry]) -> bool,
) -> Result<(), etcd_client::Error> {
    let options = WatchOptions::new()
        .with_prefix()
        .with_start_revision(revision);
    let mut watch = client.watch("/", Some(options)).await?;
    while let Some(answer) = watch.message().await? {
        if answer.canceled() {
            let reason = answer.cancel_reason().to_owned();
            return Err(etcd_client::Error::WatchError(reason));
        }
        let seen = Instant::now();
        let read = answer.events().iter().filter_map(|event| read(event, seen));
        let mut batch: Vec<_> = read.collect();
        attach_deletion_causes(&mut batch);
        let mut entries = entries.lock();
        entries.extend(batch);
        if complete(&entries) {
            return Ok(());
        }
    }
    Ok(())
}

fn read(event: &etcd_client::Event, seen: Instant) -> Option<Entry> {
    let kv = event.kv()?;
    let put = event.event_type() == EventType::Put;
    let value = Bytes::copy_from_slice(kv.value());
    let envelope = envelope::read(&value).ok();
    let cause = envelope
        .as_ref()
        .and_then(|envelope| envelope.cause.clone());
    Some(Entry {
        revision: kv.mod_revision(),
        seen,
        key: kv.key_str().ok()?.to_owned(),
        object: envelope.map(|envelope| envelope.raw).filter(|_| put),
        created: put && kv.version() == 1,
        cause: cause.unwrap_or_default(),
        value,
    })
}

fn attach_deletion_causes(batch: &mut [Entry]) {
    let causes = batch.iter().filter(|entry| entry.key == DELETION_CAUSE);
    let causes: BTreeMap<_, _> = causes
        .filter_map(|entry| Some((entry.revision, Cause::decode(entry.value.clone()).ok()?)))
        .collect();
    for entry in batch.iter_mut().filter(|entry| entry.object.is_none()) {
        if let Some(cause) = causes.get(&entry.revision) {
            entry.cause.clone_from(cause);
        }
    }
}

/// Reads the revisions of all changes of ConfigMaps after `after`, up to the first one at or after `until`.
///
/// # Panics
/// If etcd is not reachable or has compacted these revisions.
pub async fn config_map_revisions(etcd: &Address, after: Revision, until: Revision) -> Vec<u64> {
    let client = etcd.etcd().await.expect("etcd is up");
    let mut client = client.watch_client().max_decoding_message_size(MESSAGE_MAX);
    let start = i64::try_from(after.raw() + 1).expect("revisions are small");
    let options = WatchOptions::new().with_prefix().with_start_revision(start);
    let watch = client.watch("/registry/configmaps/", Some(options)).await;
    let mut watch = watch.expect("etcd can be watched");
    let mut revisions = Vec::new();
    while revisions.last().is_none_or(|last| *last < until.raw()) {
        let message = watch.message().await.expect("the watch works");
        let message = message.expect("the watch has no end");
        assert!(!message.canceled(), "etcd has kept its history");
        let kvs = message.events().iter().filter_map(|event| event.kv());
        revisions.extend(kvs.map(|kv| u64::try_from(kv.mod_revision()).expect("never below 0")));
    }
    revisions
}
