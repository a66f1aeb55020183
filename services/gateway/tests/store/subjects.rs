//! A real etcd of one's own, as the contract suites want it.

use std::sync::Arc;

use etcd_client::Client;
use futures::future::{BoxFuture, FutureExt as _};
use setpoint_gateway::store::Store;
use setpoint_gateway::store::etcd::{self, Etcd};
use setpoint_model::Revision;
use setpoint_testkit::Subject;

/// The adapter, and the process behind it.
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

    /// With calls that are given up sooner.
    pub async fn impatient() -> Self {
        let process = setpoint_testkit::Etcd::start().await;
        let settings = etcd::Settings {
            timeout: std::time::Duration::from_secs(1),
            ..Default::default()
        };
        let store = adapter(&process, settings).await;
        Self { store, process }
    }
}

/// Another adapter to the same etcd, with answers no larger than this.
pub async fn with_message_limit(subject: &OnEtcd, message_limit: usize) -> Arc<dyn Store> {
    let settings = etcd::Settings {
        message_limit,
        ..Default::default()
    };
    adapter(&subject.process, settings).await
}

async fn adapter(process: &setpoint_testkit::Etcd, settings: etcd::Settings) -> Arc<dyn Store> {
    let settings = etcd::Settings {
        endpoints: vec![process.url()],
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
