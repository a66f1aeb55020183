//! The adapter to a real etcd as a subject of the contract suites.

use std::sync::Arc;

use etcd_client::Client;
use futures::future::{BoxFuture, FutureExt as _, ready};
use setpoint_encryption::{Configuration, Encryption};
use setpoint_model::Revision;
use setpoint_store::contract::{FaultyStore, Subject};
use setpoint_store::etcd::{self, Etcd};
use setpoint_store::{Bumped, Encrypted, Memory, Store, Write, keys};

/// The number by which revisions of a restored store are greater.
const BUMP: u64 = 10_000;

/// The adapter, and its own etcd process.
pub struct OnEtcd {
    pub store: Arc<dyn Store>,
    pub process: setpoint_testkit::Etcd,
}

impl OnEtcd {
    pub async fn start() -> Self {
        let process = setpoint_testkit::Etcd::start().await;
        let store = adapter(&process, etcd::Settings::default()).await;
        Self { store, process }
    }

    /// As [`start`](Self::start), with a short timeout of calls.
    pub async fn with_short_timeout() -> Self {
        let process = setpoint_testkit::Etcd::start().await;
        let settings = etcd::Settings {
            timeout: std::time::Duration::from_secs(1),
            ..Default::default()
        };
        let store = adapter(&process, settings).await;
        Self { store, process }
    }
}

/// Returns another adapter to the same etcd with a limit of responses, in bytes.
pub async fn with_message_limit(subject: &OnEtcd, message_limit: usize) -> Arc<dyn Store> {
    let settings = etcd::Settings {
        message_limit,
        ..Default::default()
    };
    adapter(&subject.process, settings).await
}

/// Returns an adapter to the etcd behind a link.
pub async fn through(link: &setpoint_testkit::Link) -> Arc<dyn Store> {
    connect(link.url(), etcd::Settings::default()).await
}

async fn adapter(process: &setpoint_testkit::Etcd, settings: etcd::Settings) -> Arc<dyn Store> {
    connect(process.url(), settings).await
}

async fn connect(url: String, settings: etcd::Settings) -> Arc<dyn Store> {
    let settings = etcd::Settings {
        endpoints: vec![url],
        ..settings
    };
    Arc::new(Etcd::connect(&settings).await.unwrap())
}

impl Subject for OnEtcd {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn compact(&self, at: Revision) -> BoxFuture<'_, ()> {
        async move {
            let mut client = Client::connect([self.process.url()], None).await.unwrap();
            let at = at.raw().try_into().unwrap();
            client.compact(at, None).await.unwrap();
        }
        .boxed()
    }
}

/// A subject all of whose values are encrypted.
pub struct WithEncryption<S> {
    inner: S,
    store: Arc<dyn Store>,
}

/// Returns a subject whose values are encrypted in `inner`.
pub fn encrypted<S: Subject>(inner: S) -> WithEncryption<S> {
    let configuration = Configuration::read(EVERYTHING.as_bytes()).unwrap();
    let encryption = Arc::new(Encryption::new(&configuration));
    let store = Arc::new(Encrypted::new(inner.store(), encryption));
    WithEncryption { inner, store }
}

impl<S: Subject> Subject for WithEncryption<S> {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn compact(&self, at: Revision) -> BoxFuture<'_, ()> {
        self.inner.compact(at)
    }
}

const EVERYTHING: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: ['*.*']
  providers: [{aesgcm: {keys: [{name: one, secret: MTIzNDU2Nzg5MDEyMzQ1Ng==}]}}]
";

/// A subject whose answers to commits are lost, late, or to the second of two identical calls.
pub struct Faulty<S> {
    inner: S,
    store: Arc<FaultyStore>,
}

/// Returns a subject with these faults.
pub fn faulty<S: Subject>(inner: S) -> Faulty<S> {
    let store = FaultyStore::new(inner.store());
    store.lose_double_and_delay_answers();
    Faulty { inner, store }
}

impl<S: Subject> Subject for Faulty<S> {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn compact(&self, at: Revision) -> BoxFuture<'_, ()> {
        self.inner.compact(at)
    }
}

/// A store in memory whose revisions go on where those of a lost one ended.
pub struct Restored {
    memory: Memory,
    store: Arc<dyn Store>,
}

/// Returns a store with greater revisions than those of `memory`.
pub async fn bumped(memory: Memory) -> Restored {
    let bump = Write::create(keys::REVISION_BUMP, BUMP.to_string().into());
    memory.commit(bump).await.unwrap();
    let store = Arc::new(Bumped::new(memory.clone()));
    Restored { memory, store }
}

impl Subject for Restored {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn compact(&self, at: Revision) -> BoxFuture<'_, ()> {
        let below = at.raw().saturating_sub(BUMP);
        Memory::compact(&self.memory, Revision::from_raw(below));
        ready(()).boxed()
    }
}
