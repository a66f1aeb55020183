//! The guarantees of an informer, also when watches break.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_controller::client::ListOptions;
use setpoint_controller::informer::SharedInformers;
use setpoint_controller::{Delta, Informer, Reader, View as _, Whole};
use setpoint_model::{Key, Meta, Revision};
use setpoint_proto::Cause;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::meta::OwnerReference;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::server::{Faults, Server, config_map, eventually, namespace, soon};

type View = Whole<ConfigMap>;

/// The changes that handlers got: `+name`, `~name` or `-name`.
type Changes = Arc<Mutex<Vec<String>>>;

/// Starts an informer; returns its reader and the changes that its handler gets.
fn start(server: &Server) -> (Reader<View>, Changes) {
    let changes = Changes::default();
    let notes = changes.clone();
    let informer: Informer<View> = server.client("test").informer();
    let reader = informer.reader();
    let cache = reader.clone();
    let informer = informer.on_event(move |delta| {
        let view = delta.new.as_ref().or(delta.old.as_ref()).unwrap();
        let key = &view.meta().key;
        let sign = match (&delta.old, &delta.new) {
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        // The cache has the change before the handler is called.
        let seen = cache.get(key).map(|seen| seen.meta.revision);
        let blind = sign != '-' && seen < Some(view.meta.revision);
        let blind = if blind { " unseen" } else { "" };
        notes.lock().push(format!("{sign}{}{blind}", key.name));
    });
    tokio::spawn(informer.run(CancellationToken::new()));
    (reader, changes)
}

#[tokio::test(start_paused = true)]
async fn equal_views_and_selections_share_one_watch_that_outlives_its_first_user() {
    let server = Server::start().await;
    let all = SharedInformers::new(server.client("test"));
    let informer = |namespace: &str| {
        let only = ListOptions {
            namespace: namespace.to_owned(),
            ..ListOptions::default()
        };
        all.informer::<View>(only)
    };
    let handled = Arc::new(AtomicUsize::new(0));
    let start = |informer: Informer<View>| {
        let (reader, handled, stop) =
            (informer.reader(), handled.clone(), CancellationToken::new());
        let informer = informer.on_event(move |_| _ = handled.fetch_add(1, Ordering::Relaxed));
        tokio::spawn(informer.run(stop.clone()));
        (reader, stop)
    };
    let (first, second) = (start(informer("")), start(informer("")));
    server.put(&config_map("a"));
    eventually("both caches have the object", async || {
        first.0.len() + second.0.len() == 2
    })
    .await;
    assert_eq!(
        (server.calls("Watch"), handled.load(Ordering::Relaxed)),
        (1, 2)
    );
    start(informer("other"));
    eventually("another selection is watched", async || {
        server.calls("Watch") == 2
    })
    .await;
    first.1.cancel();
    sleep(Duration::from_secs(1)).await;
    server.put(&config_map("b"));
    eventually("the second continues", async || second.0.len() == 2).await;
}

async fn until_reached(reader: &Reader<View>, server: &Server) {
    let revision = Revision::from_raw(server.revision());
    eventually("the copy is as far as the gateway", async || {
        reader.reached() >= revision
    })
    .await;
}

/// Stops the events of the watch.
fn mute(server: &Server) {
    server.set_faults(Faults {
        mute: Some(("configmaps", server.revision())),
        ..Faults::default()
    });
}

fn names(reader: &Reader<View>) -> Vec<String> {
    let list = reader.list();
    list.iter().map(|view| view.meta.key.name.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn readers_see_the_state_and_then_every_change() {
    let server = Server::start().await;
    server.put(&config_map("a"));
    let (reader, changes) = start(&server);
    assert!(!reader.has_synced());
    soon(reader.synced()).await;
    assert!(reader.has_synced());
    assert_eq!(names(&reader), ["a"]);
    assert_eq!((reader.len(), reader.is_empty()), (1, false));

    let b = server.put(&config_map("b"));
    server.put(&b);
    server.remove(&b);
    until_reached(&reader, &server).await;
    assert_eq!(*changes.lock(), ["+a", "+b", "~b", "-b"]);
    assert_eq!(names(&reader), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_advance_the_revision_that_is_reached() {
    let server = Server::start().await;
    let (reader, _) = start(&server);
    soon(reader.synced()).await;
    server.put(&namespace("other"));
    let newest = Revision::from_raw(server.revision());
    assert!(reader.reached() < newest);
    eventually("a bookmark arrives", async || reader.reached() >= newest).await;
    assert_eq!(server.calls("Initial"), 1);
}

/// Checks I12.
#[tokio::test(start_paused = true)]
async fn an_interrupted_initial_state_is_not_synced() {
    let server = Server::start().await;
    (0..10).for_each(|n| _ = server.put(&config_map(&format!("c{n}"))));
    server.set_faults(Faults {
        break_initial_after: Some(5),
        ..Faults::default()
    });
    let (reader, changes) = start(&server);
    eventually("it has tried some times", async || {
        server.calls("Watch") > 3
    })
    .await;
    assert!(!reader.has_synced() && reader.is_empty() && changes.lock().is_empty());

    server.set_faults(Faults::default());
    soon(reader.synced()).await;
    assert_eq!(reader.len(), 10);
    assert_eq!(changes.lock().len(), 10);
}

/// Checks I3.
#[tokio::test(start_paused = true)]
async fn a_broken_watch_is_resumed_without_fetching_the_state_again() {
    let server = Server::start().await;
    let (reader, changes) = start(&server);
    soon(reader.synced()).await;
    for n in 0..5 {
        server.break_watches();
        server.put(&config_map(&format!("c{n}")));
        eventually("the change arrives", async || reader.len() == n + 1).await;
    }
    assert_eq!(server.calls("Initial"), 1);
    assert_eq!(*changes.lock(), ["+c0", "+c1", "+c2", "+c3", "+c4"]);
}

/// Checks I5.
#[tokio::test(start_paused = true)]
async fn a_deletion_missed_while_disconnected_is_reported_and_other_objects_are_not_reported_twice()
{
    let server = Server::start().await;
    let [gone, kept, changed] = ["gone", "kept", "changed"].map(|n| server.put(&config_map(n)));
    let (reader, changes) = start(&server);
    soon(reader.synced()).await;
    changes.lock().clear();

    mute(&server);
    server.remove(&gone);
    server.put(&changed);
    server.put(&config_map("new"));
    server.compact();
    server.set_faults(Faults::default());
    server.break_watches();
    eventually("the state is fetched anew", async || {
        server.calls("Initial") == 2
    })
    .await;
    until_reached(&reader, &server).await;

    let mut changes = changes.lock().clone();
    changes.sort();
    assert_eq!(changes, ["+new", "-gone", "~changed"]);
    assert!(reader.get(&Key::of(&kept.metadata)).is_some());
}

/// Checks I4.
#[tokio::test(start_paused = true)]
async fn another_uid_under_the_same_name_is_a_deletion_and_an_addition() {
    let server = Server::start().await;
    let mut object = config_map("a");
    object.metadata.uid = "first".into();
    server.put(&object);
    let (reader, changes) = start(&server);
    soon(reader.synced()).await;

    // As one change, if the deletion and the creation were merged.
    object.metadata.uid = "second".into();
    server.put(&object);
    until_reached(&reader, &server).await;
    assert_eq!(*changes.lock(), ["+a", "-a", "+a"]);

    // As the result of a relist.
    mute(&server);
    object.metadata.uid = "third".into();
    server.put(&object);
    server.compact();
    server.set_faults(Faults::default());
    server.break_watches();
    eventually("the state is fetched anew", async || {
        server.calls("Initial") == 2
    })
    .await;
    until_reached(&reader, &server).await;
    assert_eq!(changes.lock()[3..], ["-a", "+a"]);
}

/// Checks I1.
#[tokio::test(start_paused = true)]
async fn a_half_open_connection_is_found_out_and_the_watch_resumed() {
    let server = Server::start().await;
    let (reader, changes) = start(&server);
    soon(reader.synced()).await;
    let cut = Instant::now();
    server.cut_wires();
    server.put(&config_map("a"));
    eventually("the change arrives", async || reader.len() == 1).await;
    assert!(
        cut.elapsed() < Duration::from_secs(11),
        "{:?}",
        cut.elapsed()
    );
    assert_eq!(server.calls("Initial"), 1);
    assert_eq!(*changes.lock(), ["+a"]);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_revision_of_another_kind_ends_without_a_bookmark() {
    let server = Server::start().await;
    server.put(&config_map("a"));
    let (reader, changes) = start(&server);
    soon(reader.synced()).await;
    server.put(&namespace("other"));
    let newest = Revision::from_raw(server.revision());
    let waited = timeout(Duration::from_secs(1), reader.reach(newest)).await;
    waited.expect("the state is fetched anew after a short silence");
    assert_eq!(*changes.lock(), ["+a"]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_revision_that_does_not_exist_ends_after_a_relist() {
    let server = Server::start().await;
    let (reader, _) = start(&server);
    soon(reader.synced()).await;
    let beyond = Revision::from_raw(1_000_000);
    soon(reader.reach(beyond)).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(server.calls("Initial"), 2);
    assert!(reader.reached() < beyond);
}

#[tokio::test(start_paused = true)]
async fn indexes_follow_the_objects() {
    let server = Server::start().await;
    let (reader, _) = start(&server);
    let owned_by = |uid: &str| {
        let mut object = config_map("a");
        object.metadata.uid = "a".into();
        object.metadata.owner_references = vec![OwnerReference {
            uid: uid.into(),
            controller: Some(true),
            ..OwnerReference::default()
        }];
        object
    };
    server.put(&owned_by("first"));
    soon(reader.synced()).await;
    assert_eq!(reader.owned_by("first").len(), 1);

    let object = server.put(&owned_by("second"));
    until_reached(&reader, &server).await;
    assert!(reader.owned_by("first").is_empty());
    assert_eq!(reader.owned_by("second").len(), 1);
    assert_eq!(reader.in_namespace("default").len(), 1);
    assert!(reader.in_namespace("defaul").is_empty());

    server.remove(&object);
    until_reached(&reader, &server).await;
    assert!(reader.owned_by("second").is_empty() && reader.in_namespace("default").is_empty());
}

/// A view with a label as its tag.
struct Tagged(View);

impl setpoint_controller::View for Tagged {
    type Object = ConfigMap;

    fn of(object: ConfigMap) -> Self {
        Self(View::of(object))
    }

    fn meta(&self) -> &Meta {
        self.0.meta()
    }

    fn tag(&self) -> Option<&str> {
        self.0.meta.labels.get("tag").map(String::as_str)
    }
}

#[tokio::test(start_paused = true)]
async fn objects_are_found_by_their_tags_and_visited_with_their_causes() {
    let server = Server::start().await;
    let informer: Informer<Tagged> = server.client("test").informer();
    let reader = informer.reader();
    tokio::spawn(informer.run(CancellationToken::new()));
    soon(reader.synced()).await;
    let tagged = |name: &str, tag: &str| {
        let mut object = config_map(name);
        object.metadata.labels.insert("tag".into(), tag.into());
        object
    };
    let cause = Cause {
        writer: "writer".into(),
        ..Cause::default()
    };
    server.put(&config_map("a"));
    server.put(&tagged("b", "x"));
    server.put(&tagged("c", "x"));
    server.put_because(&tagged("d", "y"), cause);
    eventually("all are there", async || reader.len() == 4).await;
    let found = |tag: &str| {
        let found = reader.tagged(tag);
        let names = found.iter().map(|view| view.0.meta.key.name.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(
        (found("x"), found("y")),
        (vec!["b".into(), "c".into()], vec!["d".into()])
    );
    let mut caused = Vec::new();
    reader.for_each(|view, cause| {
        let writer = cause.map_or("", |cause| &cause.writer);
        caused.push(format!("{} {writer}", view.0.meta.key.name));
    });
    assert_eq!(caused, ["a ", "b ", "c ", "d writer"]);

    server.put(&tagged("b", "y"));
    server.remove(&tagged("c", "x"));
    eventually("one is gone", async || reader.len() == 3).await;
    assert_eq!((found("x"), found("y").len()), (Vec::new(), 2));
}

/// A handler that panics misses that change. Other handlers, other changes and the cache are not affected.
#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_stops_nothing_else() {
    let server = Server::start().await;
    let changes = Changes::default();
    let (careful, later) = (changes.clone(), changes.clone());
    let informer: Informer<View> = server.client("test").informer();
    let reader = informer.reader();
    let name = |delta: &Delta<View>| delta.new.as_ref().unwrap().meta.key.name.clone();
    let informer = informer
        .on_event(move |delta| {
            assert_ne!(name(delta), "poison");
            careful.lock().push(format!("first {}", name(delta)));
        })
        .on_event(move |delta| later.lock().push(format!("second {}", name(delta))));
    tokio::spawn(informer.run(CancellationToken::new()));
    soon(reader.synced()).await;
    server.put(&config_map("poison"));
    server.put(&config_map("a"));
    until_reached(&reader, &server).await;
    assert_eq!(*changes.lock(), ["second poison", "first a", "second a"]);
    assert_eq!(names(&reader), ["a", "poison"]);
}

/// A view whose index panics once, which leaves the cache half-changed.
struct Poisoned(View);

static POISON: AtomicUsize = AtomicUsize::new(0);

impl setpoint_controller::View for Poisoned {
    type Object = ConfigMap;

    fn of(object: ConfigMap) -> Self {
        assert_ne!(object.metadata.name, "unreadable");
        Self(View::of(object))
    }

    fn meta(&self) -> &Meta {
        self.0.meta()
    }

    fn tag(&self) -> Option<&str> {
        let poisoned = self.0.meta.key.name == "poison";
        assert!(!poisoned || POISON.fetch_add(1, Ordering::Relaxed) > 0);
        None
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_panics_fetches_the_state_anew() {
    let server = Server::start().await;
    let informer: Informer<Poisoned> = server.client("test").informer();
    let reader = informer.reader();
    tokio::spawn(informer.run(CancellationToken::new()));
    soon(reader.synced()).await;
    server.put(&config_map("unreadable"));
    server.put(&config_map("a"));
    server.put(&config_map("poison"));
    eventually("all that can be read is there", async || reader.len() == 2).await;
    assert!(POISON.load(Ordering::Relaxed) > 1);
    assert_eq!(server.calls("Initial"), 2);
}
