//! Failures of etcd: killed, frozen, restored, or without its data. No acknowledged write may be lost, and no outcome
//! guessed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use setpoint_model::Revision;
use setpoint_proto::Reason;
use setpoint_proto::core::ConfigMap;
use setpoint_store::cache::{AtLeast, Cache, Filter, Health, Settings, Start, Watch, WatchSpec};
use setpoint_store::contract::FaultyStore;
use setpoint_store::contract::objects::{config_map, enveloped, key_of, kind, without_identity};
use setpoint_store::{Error, Range, Store, Write, keys};
use setpoint_testkit::Link;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::subjects::{OnEtcd, through, with_message_limit};

const LONG: Duration = Duration::from_secs(40);
/// The delay between two writes of a writer. With more writes per second the cache would miss so many revisions that
/// it relists, which ends its watches.
const DELAY: Duration = Duration::from_millis(2);

async fn create(store: &Arc<dyn Store>, name: &str) -> Result<Revision, Error> {
    let value = enveloped(&config_map(name, name), None);
    store
        .commit(Write::create(key_of::<ConfigMap>(name), value))
        .await
}

async fn following(cache: &Cache) {
    timeout(LONG, cache.synced())
        .await
        .expect("the cache follows");
}

async fn follow(cache: &Cache, start: Start) -> Watch {
    let filter = Filter::all(kind::<ConfigMap>(), "");
    let spec = WatchSpec {
        filter,
        start,
        bookmarks: false,
    };
    cache.watch(spec).await.unwrap()
}

/// Waits for the error at the end of a watch.
async fn error_of(watch: Watch) -> Reason {
    let mut errors = watch.filter_map(|event| async { event.err() }).boxed();
    timeout(LONG, errors.next())
        .await
        .expect("the watch ends")
        .unwrap()
        .reason
}

/// The outcomes of the creates of one writer.
#[derive(Default)]
struct Log {
    acknowledged: Vec<(String, Revision)>,
    refused: Vec<String>,
}

/// Creates one object after the other until `stop` is set.
async fn write_until(store: Arc<dyn Store>, writer: usize, stop: watch::Receiver<bool>) -> Log {
    let mut log = Log::default();
    for round in 0.. {
        if *stop.borrow() {
            break;
        }
        sleep(DELAY).await;
        let name = format!("web-{writer}-{round}");
        match create(&store, &name).await {
            Ok(revision) => log.acknowledged.push((name, revision)),
            Err(Error::Unknown) => {}
            Err(Error::Conflict { .. }) => panic!("{name} has only one writer"),
            Err(_) => log.refused.push(name),
        }
    }
    log
}

/// Checks S1, S2, S3, S4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_a_kill_of_etcd_under_load() {
    let mut etcd = OnEtcd::start().await;
    let cache = Cache::start(etcd.store.clone(), Settings::default());
    following(&cache).await;
    let mut watch = follow(&cache, Start::Now).await;
    let (stop, stopping) = watch::channel(false);
    let writers = (0..8)
        .map(|writer| tokio::spawn(write_until(etcd.store.clone(), writer, stopping.clone())));
    let writers: Vec<_> = writers.collect();

    let mut seen = Vec::new();
    for kills in 0..2 {
        seen.extend(
            (&mut watch)
                .take(300 * (kills + 1))
                .collect::<Vec<_>>()
                .await,
        );
        etcd.process.kill();
        etcd.process.restart().await;
    }
    seen.extend((&mut watch).take(300).collect::<Vec<_>>().await);
    stop.send_replace(true);
    let logs: Vec<Log> = join_all(writers)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();

    let newest = etcd.store.revision().await.unwrap();
    let stored = etcd
        .store
        .list(Range::all(keys::ROOT))
        .await
        .unwrap()
        .entries;
    let seen_rest = (&mut watch).take(stored.len() - seen.len());
    seen.extend(
        timeout(LONG, seen_rest.collect::<Vec<_>>())
            .await
            .expect("every change arrives"),
    );
    check(&logs, &stored, newest);
    let sent: Vec<_> = seen
        .into_iter()
        .map(Result::unwrap)
        .map(|event| event.object.revision)
        .collect();
    let mut written: Vec<_> = stored.iter().map(|entry| entry.revision).collect();
    written.sort_unstable();
    assert_eq!(
        sent, written,
        "every revision once, in order, through both kills"
    );
}

fn check(logs: &[Log], stored: &[setpoint_store::Entry], newest: Revision) {
    let known: BTreeSet<_> = stored
        .iter()
        .map(|entry| (entry.key.clone(), entry.revision))
        .collect();
    for log in logs {
        for (name, revision) in &log.acknowledged {
            let entry = (key_of::<ConfigMap>(name), *revision);
            assert!(
                known.contains(&entry),
                "{name} was acknowledged at {revision}"
            );
            assert!(*revision <= newest);
        }
        for name in &log.refused {
            let key = key_of::<ConfigMap>(name);
            assert!(
                stored.iter().all(|entry| entry.key != key),
                "{name} was reported as not written"
            );
        }
    }
}

/// A frozen etcd may still commit a write that it has received, so the write must not be reported as failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_outcome_of_a_write_to_a_frozen_etcd_is_read_after_it_thaws() {
    let etcd = OnEtcd::with_short_timeout().await;
    create(&etcd.store, "before").await.unwrap();
    etcd.process.freeze();
    let store = etcd.store.clone();
    let writing = tokio::spawn(async move { create(&store, "during").await });
    let unread = etcd.store.get(&key_of::<ConfigMap>("before")).await;
    assert!(
        matches!(unread, Err(Error::Timeout | Error::Unavailable(_))),
        "{unread:?}"
    );
    etcd.process.thaw();
    let outcome = timeout(LONG, writing)
        .await
        .expect("the outcome is determined")
        .unwrap();
    let stored = etcd
        .store
        .get(&key_of::<ConfigMap>("during"))
        .await
        .unwrap();
    match outcome {
        Ok(revision) => assert_eq!(stored.unwrap().revision, revision),
        Err(error) => assert_eq!(error, Error::Unknown),
    }
}

/// Checks DG1: etcd's answer is lost, and another client has changed the object since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_outcome_of_a_write_whose_answer_is_lost_is_read_from_the_history() {
    let etcd = OnEtcd::start().await;
    let link = Link::to(&etcd.process.url());
    let store = through(&link).await;
    create(&store, "before").await.unwrap();
    link.hold_answers();
    let writing = tokio::spawn(async move { create(&store, "web").await });
    let key = key_of::<ConfigMap>("web");
    let created = timeout(LONG, async {
        loop {
            if let Some(entry) = etcd.store.get(&key).await.unwrap() {
                return entry.revision;
            }
        }
    });
    let created = created.await.expect("etcd commits the write");
    let changed = enveloped(&config_map("web", "changed"), None);
    let update = Write::update(key, created, changed);
    etcd.store.commit(update).await.unwrap();
    link.cut_open_connections();
    let outcome = timeout(LONG, writing)
        .await
        .expect("the outcome is determined");
    assert_eq!(outcome.unwrap(), Ok(created));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_without_a_connection_fails_as_unavailable() {
    let mut etcd = OnEtcd::with_short_timeout().await;
    etcd.process.kill();
    let refused = create(&etcd.store, "web").await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    etcd.process.restart().await;
    timeout(LONG, create(&etcd.store, "web"))
        .await
        .unwrap()
        .unwrap();
}

/// etcd may start after the gateway.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_started_before_etcd_is_behind_until_etcd_serves() {
    let mut etcd = OnEtcd::with_short_timeout().await;
    etcd.process.kill();
    let cache = Cache::start(etcd.store.clone(), Settings::default());
    let mut health = cache.health();
    let behind = health.wait_for(|health| matches!(health, Health::Behind(_)));
    timeout(LONG, behind)
        .await
        .expect("the health is Behind")
        .unwrap();
    assert!(!cache.ready());
    let filter = Filter::all(kind::<ConfigMap>(), "");
    let refused = cache.list(&filter, AtLeast::Any).await.unwrap_err();
    assert_eq!(refused.reason, Reason::ServiceUnavailable);
    etcd.process.restart().await;
    following(&cache).await;
}

/// Checks S4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_relists_when_etcd_has_lost_its_data() {
    let mut etcd = OnEtcd::with_short_timeout().await;
    for name in ["a", "b", "c"] {
        create(&etcd.store, name).await.unwrap();
    }
    let cache = Cache::start(etcd.store.clone(), Settings::default());
    following(&cache).await;
    let reached = cache.reached();
    let watch = follow(&cache, Start::Now).await;
    etcd.process.kill();
    etcd.process.restart_empty().await;
    assert_eq!(error_of(watch).await, Reason::Expired);
    following(&cache).await;
    assert!(cache.reached() < reached);
    let list = cache
        .list(&Filter::all(kind::<ConfigMap>(), ""), AtLeast::Newest)
        .await
        .unwrap();
    assert!(list.items.is_empty());
    let filter = Filter::all(kind::<ConfigMap>(), "");
    let spec = WatchSpec {
        filter,
        start: Start::After(reached),
        bookmarks: false,
    };
    assert_eq!(
        cache.watch(spec).await.err().unwrap().reason,
        Reason::Expired
    );
}

/// Checks F10, S4, S8: etcd was restored to a state without some objects, and has since advanced beyond the revision
/// of the cache.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_relists_when_etcd_was_restored_and_is_ahead_again() {
    let mut etcd = OnEtcd::with_short_timeout().await;
    for name in ["a", "b", "c"] {
        create(&etcd.store, name).await.unwrap();
    }
    let link = FaultyStore::new(etcd.store.clone());
    let cache = Cache::start(link.clone(), Settings::default());
    following(&cache).await;
    let reached = cache.reached();
    let watch = follow(&cache, Start::Now).await;
    link.cut();
    etcd.process.kill();
    etcd.process.restart_empty().await;
    etcd.store.revision().await.unwrap();
    for name in ["p", "q", "r", "s", "t"] {
        create(&etcd.store, name).await.unwrap();
    }
    assert!(etcd.store.revision().await.unwrap() > reached);
    link.release();
    assert_eq!(error_of(watch).await, Reason::Expired);
    following(&cache).await;
    let all = Filter::all(kind::<ConfigMap>(), "");
    let list = cache.list(&all, AtLeast::Newest).await.unwrap();
    let names: Vec<_> = list.items.iter().map(|item| &*item.key.name).collect();
    assert_eq!(names, ["p", "q", "r", "s", "t"]);
}

/// Checks S2: etcd sends a backlog in one response, which it splits if it is too large.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_objects_arrive_whole_in_a_backlog_that_etcd_splits() {
    let etcd = OnEtcd::start().await;
    let start = etcd.store.revision().await.unwrap();
    let mut object = config_map("large", "1");
    object.data.insert("large".into(), "x".repeat(1 << 20));
    let value = enveloped(&object, None);
    for round in 0..10 {
        let key = key_of::<ConfigMap>(&format!("large-{round}"));
        etcd.store
            .commit(Write::create(key, value.clone()))
            .await
            .unwrap();
    }
    let batches: Vec<_> = timeout(LONG, etcd.store.watch(start).take(10).collect())
        .await
        .unwrap();
    for batch in batches {
        let written = batch.unwrap().changes[0].value.clone();
        assert_eq!(without_identity(&written.unwrap()), value);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_beyond_the_request_limit_of_etcd_is_too_large() {
    let etcd = OnEtcd::start().await;
    let object = config_map("web", &"x".repeat(2 << 20));
    let write = Write::create(key_of::<ConfigMap>("web"), enveloped(&object, None));
    assert_eq!(etcd.store.commit(write).await, Err(Error::TooLarge));
}

/// The pages of a relist exceed the limit of responses if objects are large.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_beyond_the_message_limit_is_read_in_smaller_pages() {
    let etcd = OnEtcd::start().await;
    let value = enveloped(&config_map("large", &"x".repeat(100 << 10)), None);
    for round in 0..40 {
        let key = key_of::<ConfigMap>(&format!("large-{round}"));
        let write = Write::create(key, value.clone());
        etcd.store.commit(write).await.unwrap();
    }
    let store = with_message_limit(&etcd, 3 << 20).await;
    let newest = Settings {
        history: 0,
        ..Settings::default()
    };
    let cache = Cache::start(store, newest);
    following(&cache).await;
    let filter = Filter::all(kind::<ConfigMap>(), "");
    let list = cache.list(&filter, AtLeast::Any).await.unwrap();
    assert_eq!(list.items.len(), 40);
    let page = cache.page(&filter, list.revision, None, 0).await.unwrap();
    assert_eq!((page.items.len(), page.remaining), (40, 0));
}
