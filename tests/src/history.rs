//! What etcd has seen: every write since the beginning, who made it and under which term.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use etcd_client::{Client, EventType, WatchOptions};
use parking_lot::Mutex;
use prost::Message as _;
use setpoint_codec::envelope;
use setpoint_proto::Cause;
use tokio::runtime::{Builder, Runtime};

use crate::eventually;
use crate::wait::DEADLINE;

/// The gateway leaves the cause of a deletion here, in the deletion's own transaction.
const FAREWELL: &str = "/setpoint/farewell";
const PAUSE: Duration = Duration::from_millis(100);

/// One key, put or deleted.
#[derive(Clone, Debug)]
pub struct Entry {
    /// In the order of the commits.
    pub revision: i64,
    /// When the watch told of it.
    pub seen: Instant,
    /// For example `/registry/pods/default/web`.
    pub key: String,
    /// The object's bytes; `None`: deleted.
    pub object: Option<Bytes>,
    /// Is it the key's first write since it was not there?
    pub created: bool,
    /// Why.
    pub cause: Cause,
    /// The bytes as etcd has them.
    pub value: Bytes,
}

/// Follows etcd's history from its beginning, for as long as it lives.
pub struct History {
    entries: Arc<Mutex<Vec<Entry>>>,
    etcd: String,
    runtime: Option<Runtime>,
}

impl History {
    /// The history of the etcd at this address.
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

    /// Everything that has been committed by now.
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

    /// What has been heard of by now.
    pub fn so_far(&self) -> Vec<Entry> {
        self.entries.lock().clone()
    }

    fn revision(&self) -> i64 {
        let (told, revision) = std::sync::mpsc::channel();
        let etcd = self.etcd.clone();
        let asked = async move {
            let mut client = Client::connect([etcd], None).await?;
            let answer = client.get("/", None).await?;
            let revision = answer
                .header()
                .map_or(0, etcd_client::ResponseHeader::revision);
            let _ = told.send(revision);
            Ok::<_, etcd_client::Error>(())
        };
        self.runtime.as_ref().map(|runtime| runtime.spawn(asked));
        let answer = revision.recv_timeout(DEADLINE);
        answer.expect("etcd answers")
    }
}

impl Drop for History {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Begins anew where it was whenever etcd is not to be reached.
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
        attach_farewells(&mut batch);
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

fn attach_farewells(batch: &mut [Entry]) {
    let causes = batch.iter().filter(|entry| entry.key == FAREWELL);
    let causes: BTreeMap<_, _> = causes
        .filter_map(|entry| Some((entry.revision, Cause::decode(entry.value.clone()).ok()?)))
        .collect();
    for entry in batch.iter_mut().filter(|entry| entry.object.is_none()) {
        if let Some(cause) = causes.get(&entry.revision) {
            entry.cause.clone_from(cause);
        }
    }
}
