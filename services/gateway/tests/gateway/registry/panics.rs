//! Tests of panics in background tasks: a supervised task is restarted, and the others run on.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_proto::core::{Event, Service};
use setpoint_store::Memory;
use setpoint_store::contract::FaultyStore;
use setpoint_store::contract::objects::NAMESPACE;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::registry::gateway::TestGateway;

const HOUR: Duration = Duration::from_secs(3600);

/// The reports of the tasks, in order.
type Reports = Arc<Mutex<Vec<(&'static str, Result<(), String>)>>>;

/// Returns a store that panics at the deletion of a key that contains `word`.
fn panics_at_deletion_of(word: &'static str) -> Arc<FaultyStore> {
    let store = FaultyStore::new(Arc::new(Memory::default()));
    store.panic_in_commits(move |write| write.value.is_none() && write.key.contains(word));
    store
}

fn run(gateway: &TestGateway, event_ttl: Duration) -> (Reports, DropGuard) {
    let (reports, stop) = (Reports::default(), CancellationToken::new());
    let sink = reports.clone();
    let report = move |task| {
        let sink = sink.clone();
        move |state| sink.lock().push((task, state))
    };
    let registry = gateway.registry.clone();
    tokio::spawn(registry.run_background(event_ttl, stop.clone(), report));
    (reports, stop.drop_guard())
}

/// Checks F1: a supervised task that panics is restarted, and reports failures while it keeps failing.
#[tokio::test(start_paused = true)]
async fn a_supervised_task_that_panics_is_restarted_and_reported() {
    let store = panics_at_deletion_of("/events/");
    let gateway = TestGateway::start_over(store.clone()).await;
    let mut old = Event::default();
    old.metadata.name = "old".into();
    old.involved_object.namespace = NAMESPACE.into();
    gateway.create(&old).await.unwrap();
    let (reports, _stop) = run(&gateway, Duration::from_secs(1));
    let failing = async {
        let is_reported = || {
            let reports = reports.lock();
            let mut failed = reports.iter().filter(|(_, state)| state.is_err());
            failed.any(|(task, _)| *task == "expiry")
        };
        while !is_reported() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(HOUR, failing).await.unwrap();
    // Others still run.
    let is_it = |service: &Service| service.metadata.name == "kubernetes";
    gateway.seen(is_it).await;
    store.panic_in_commits(|_| false);
    gateway.gone::<Event>("old").await;
}
