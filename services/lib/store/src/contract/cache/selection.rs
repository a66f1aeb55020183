//! Selection: watches and lists with label and field selectors.

use crate::Write;
use crate::cache::{AtLeast, Filter, Start, WatchSpec};
use setpoint_model::Key;
use setpoint_model::selector::{Fields, Selector};
use setpoint_proto::EventType::{Added, Deleted, Modified};
use setpoint_proto::Reason;
use setpoint_proto::core::{ConfigMap, Pod};

use super::fixture::{
    bind, cache, config_maps, next_error, pods_of, set, summary, take, unset, watch,
};
use crate::contract::objects::{NAMESPACE, key_of, kind};
use crate::contract::{FaultyStore, Subject};

/// An object that no longer matches is `Deleted` for the watcher, in its last matching version; one that matches again
/// is `Added`.
pub async fn an_object_that_enters_or_leaves_a_selector_is_added_or_deleted(subject: impl Subject) {
    let store = subject.store();
    let cache = cache(&store).await;
    let labels = Selector::parse("value in (2, 3)").unwrap();
    let filter = Filter::new(kind::<ConfigMap>(), "", labels, &Fields::default()).unwrap();
    let mut watcher = watch(&cache, filter.clone(), Start::Now).await.unwrap();
    let mut written = Vec::new();
    for value in ["1", "2", "3", "4", "2"] {
        written.push(set(&store, "web", value).await);
    }
    written.push(unset::<ConfigMap>(&store, "web").await);
    let events = take(&mut watcher, 5).await;
    let expected = [
        (Added, "web", written[1]),
        (Modified, "web", written[2]),
        (Deleted, "web", written[3]),
        (Added, "web", written[4]),
        (Deleted, "web", written[5]),
    ];
    assert_eq!(summary(&events), expected);
    assert_eq!(
        events[2].object.labels()["value"],
        "3",
        "as it was last seen"
    );
}

/// Covers the index by node.
pub async fn a_watch_by_node_gets_the_pods_of_that_node_only(subject: impl Subject) {
    let store = subject.store();
    let mine = bind(&store, "mine", "node-1").await;
    bind(&store, "other", "node-2").await;
    let cache = cache(&store).await;
    let start = Start::Initial(AtLeast::Newest);
    let mut watcher = watch(&cache, pods_of("node-1"), start).await.unwrap();
    assert_eq!(
        summary(&take(&mut watcher, 2).await)[0],
        (Added, "mine", mine)
    );
    bind(&store, "other-2", "node-2").await;
    bind(&store, "unbound", "").await;
    let changed = bind(&store, "mine", "node-1").await;
    let gone = unset::<Pod>(&store, "mine").await;
    let expected = [(Modified, "mine", changed), (Deleted, "mine", gone)];
    assert_eq!(summary(&take(&mut watcher, 2).await), expected);
    let list = cache
        .list(&pods_of("node-2"), AtLeast::Newest)
        .await
        .unwrap();
    let names: Vec<_> = list.items.iter().map(|pod| pod.key.name.as_str()).collect();
    assert_eq!(names, ["other", "other-2"]);
    let unbound = cache.list(&pods_of(""), AtLeast::Newest).await.unwrap();
    assert_eq!(unbound.items.len(), 1);
}

/// Checks F8.
pub async fn pods_without_a_node_can_be_watched_by_field_selector(subject: impl Subject) {
    let store = subject.store();
    let cache = cache(&store).await;
    let mut watcher = watch(&cache, pods_of(""), Start::Now).await.unwrap();
    let created = bind(&store, "pod", "").await;
    bind(&store, "other", "node-1").await;
    let bound = bind(&store, "pod", "node-1").await;
    assert_eq!(
        summary(&take(&mut watcher, 2).await),
        [(Added, "pod", created), (Deleted, "pod", bound)]
    );
}

/// Kubernetes does not move Pods, but the index must handle a changed node all the same.
pub async fn a_pod_that_changes_its_node_moves_between_the_watches_by_node(subject: impl Subject) {
    let store = subject.store();
    let cache = cache(&store).await;
    let mut from = watch(&cache, pods_of("node-1"), Start::Now).await.unwrap();
    let mut to = watch(&cache, pods_of("node-2"), Start::Now).await.unwrap();
    let bound = bind(&store, "pod", "node-1").await;
    let moved = bind(&store, "pod", "node-2").await;
    assert_eq!(
        summary(&take(&mut from, 2).await),
        [(Added, "pod", bound), (Deleted, "pod", moved)]
    );
    assert_eq!(summary(&take(&mut to, 1).await), [(Added, "pod", moved)]);
}

/// Checks F35, DG2: it has not been deleted, and what it has become cannot be told.
pub async fn an_unreadable_value_expires_watchers_and_is_an_error_to_readers(
    subject: impl Subject,
) {
    let store = subject.store();
    set(&store, "other", "1").await;
    let written = set(&store, "web", "1").await;
    let cache = cache(&store).await;
    let mut watcher = watch(&cache, config_maps(), Start::Now).await.unwrap();
    let write = Write::update(key_of::<ConfigMap>("web"), written, "no object".into());
    store.commit(write).await.unwrap();
    assert_eq!(next_error(&mut watcher).await.reason, Reason::Expired);
    let late = super::fixture::cache(&store).await;
    for cache in [&cache, &late] {
        let list = cache.list(&config_maps(), AtLeast::Newest).await.unwrap();
        assert_eq!(list.items.len(), 1);
        assert!(list.complete(kind::<ConfigMap>()).is_err());
        let spec = WatchSpec {
            filter: config_maps(),
            start: Start::Initial(AtLeast::Newest),
            bookmarks: false,
        };
        assert!(cache.watch_complete(spec).await.is_err());
        let key = Key::new(NAMESPACE, "web");
        let refused = cache.get(kind::<ConfigMap>(), &key, AtLeast::Newest).await;
        assert_eq!(refused.unwrap_err().reason, Reason::InternalError);
    }
    let mut watcher = watch(&cache, config_maps(), Start::Now).await.unwrap();
    let mended = set(&store, "web", "2").await;
    assert_eq!(
        summary(&take(&mut watcher, 1).await),
        [(Added, "web", mended)]
    );
    let list = cache.list(&config_maps(), AtLeast::Newest).await.unwrap();
    assert!(list.complete(kind::<ConfigMap>()).is_ok());
}

/// Checks F17.
pub async fn a_page_doubles_its_reads_until_it_is_full_and_never_exceeds_its_limit(
    subject: impl Subject,
) {
    let store = subject.store();
    for number in 0..60 {
        let value = if number % 10 == 0 { "no" } else { "yes" };
        set(&store, &format!("m{number:02}"), value).await;
    }
    let counted = FaultyStore::new(store.clone());
    let cache = cache(&(counted.clone() as _)).await;
    let at = cache.reached();
    let selected = |text: &str| {
        let labels = Selector::parse(text).unwrap();
        Filter::new(kind::<ConfigMap>(), "", labels, &Fields::default()).unwrap()
    };
    let most = selected("value=yes");
    let (mut after, mut sizes) = (None, Vec::new());
    loop {
        let page = cache.page(&most, at, after.as_ref(), 10).await.unwrap();
        sizes.push(page.items.len());
        after = page.last;
        if page.remaining == 0 {
            break;
        }
    }
    assert_eq!(sizes, [10, 10, 10, 10, 10, 4]);
    let before = counted.lists();
    let none = selected("value=never");
    let page = cache.page(&none, at, None, 1).await;
    assert!(page.unwrap().items.is_empty());
    // Reads of 1, 2, 4, 8, 16 and 32 keys.
    assert_eq!(counted.lists() - before, 6);
}

/// The message is that of Kubernetes.
pub async fn a_selector_on_an_unsupported_field_is_a_bad_request(_subject: impl Subject) {
    let fields = Fields::parse("spec.image=nginx").unwrap();
    let refused = Filter::new(kind::<Pod>(), "", Selector::everything(), &fields).unwrap_err();
    assert_eq!(refused.reason, Reason::BadRequest);
    assert!(
        refused
            .message
            .ends_with("field label not supported: spec.image"),
        "{}",
        refused.message
    );
}
