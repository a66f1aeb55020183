//! The log of all writes to etcd, with their causes, read through a watch from the first revision.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use etcd_client::{Client, EventType, WatchOptions};
use parking_lot::Mutex;
use prost::Message as _;
use setpoint_codec::envelope;
use setpoint_model::Revision;
use setpoint_proto::Cause;
use tokio::runtime::{Builder, Runtime};

use crate::eventually;
use crate::wait::DEADLINE;

/// Key at which the gateway records the cause of a deletion, in the same transaction.
const DELETION_CAUSE: &str = "/setpoint/farewell";
/// Size limit of a watch message, which may hold many changes.
const MESSAGE_MAX: usize = 256 << 20;
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

/// Follows etcd's log from the first revision until it is dropped. It has a runtime of its own, so that tests need none.
pub struct EtcdLog {
    entries: Arc<Mutex<Vec<Entry>>>,
    etcd: String,
    runtime: Option<Runtime>,
}

impl EtcdLog {
    /// Starts to follow the etcd at this address.
    pub fn of(etcd: &str) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("threads can be had");
        let entries = Arc::default();
        runtime.spawn(follow(etcd.to_owned(), Arc::clone(&entries)));
        Self {
            entries,
            etcd: etcd.to_owned(),
            runtime: Some(runtime),
        }
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

    fn revision(&self) -> i64 {
        let (sender, revision) = std::sync::mpsc::channel();
        let etcd = self.etcd.clone();
        let request = async move {
            let mut client = Client::connect([etcd], None).await?;
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

/// Follows the log; resumes after the last entry when the connection to etcd is lost.
async fn follow(etcd: String, entries: Arc<Mutex<Vec<Entry>>>) {
    loop {
        let last = entries.lock().last().map(|entry| entry.revision);
        let _ = follow_from(&etcd, last.unwrap_or_default() + 1, &entries).await;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow_from(
    etcd: &str,
    revision: i64,
    entries: &Mutex<Vec<Entry>>,
) -> Result<(), etcd_client::Error> {
    let mut client = Client::connect([etcd], None).await?;
    let options = WatchOptions::new()
        .with_prefix()
        .with_start_revision(revision);
    let mut watch = client.watch("/", Some(options)).await?;
    while let Some(answer) = watch.message().await? {
        let seen = Instant::now();
        let read = answer.events().iter().filter_map(|event| read(event, seen));
        let mut batch: Vec<_> = read.collect();
        attach_deletion_causes(&mut batch);
        entries.lock().extend(batch);
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
pub async fn config_map_revisions(etcd: &str, after: Revision, until: Revision) -> Vec<u64> {
    let client = Client::connect([etcd], None).await.expect("etcd is up");
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
