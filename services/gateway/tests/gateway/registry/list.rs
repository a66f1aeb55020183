//! Tests of the verb `list` and its pages.

use std::collections::BTreeSet;
use std::sync::Arc;

use setpoint_gateway::registry::{AtLeast, Filter, RequestContext};
use setpoint_gateway::verbs::{List, ListParams, RevisionMatch};
use setpoint_model::selector::{Fields, Selector};
use setpoint_proto::Reason;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::meta::DeleteOptions;
use setpoint_store::contract::objects::{NAMESPACE, config_map, kind};
use setpoint_store::{Memory, Store as _};

use crate::registry::gateway::TestGateway;

fn params(filter: Filter, limit: usize, continue_token: &str) -> ListParams {
    ListParams {
        filter,
        limit,
        continue_token: continue_token.into(),
        at: RevisionMatch::NotOlderThan(AtLeast::Newest),
    }
}

fn names(list: &List) -> Vec<&str> {
    list.items
        .iter()
        .map(|item| item.key.name.as_str())
        .collect()
}

#[tokio::test]
async fn later_pages_are_read_at_the_revision_of_the_first() {
    let gateway = TestGateway::start().await;
    for name in ["a", "b", "c", "d", "e"] {
        gateway.create(&config_map(name, "1")).await.unwrap();
    }
    let all = || Filter::all(kind::<ConfigMap>(), NAMESPACE);
    let context = RequestContext::of_server();
    let first = gateway
        .registry
        .list(&context, &params(all(), 2, ""))
        .await
        .unwrap();
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first.remaining, Some(3));
    gateway
        .delete::<ConfigMap>("c", DeleteOptions::default())
        .await
        .unwrap();
    gateway.create(&config_map("ca", "1")).await.unwrap();

    let token = first.continue_token.as_str();
    let second = gateway
        .registry
        .list(&context, &params(all(), 2, token))
        .await
        .unwrap();
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second.revision, first.revision);
    assert_eq!(second.remaining, Some(1), "Checks K5");
    let token = second.continue_token.as_str();
    let third = gateway
        .registry
        .list(&context, &params(all(), 2, token))
        .await
        .unwrap();
    assert_eq!(names(&third), ["e"]);
    assert_eq!(third.continue_token, "");
    assert_eq!(third.remaining, None);
}

/// Checks K5: a page of a compacted revision has a token for the newest one. `remaining` is unknown with a selector.
#[tokio::test]
async fn a_page_of_a_compacted_revision_can_be_continued_at_the_newest() {
    let memory = Memory::default();
    let gateway = TestGateway::start_over(Arc::new(memory.clone())).await;
    for name in ["a", "b", "c", "d"] {
        gateway.create(&config_map(name, "yes")).await.unwrap();
    }
    let labels = Selector::parse("value=yes").unwrap();
    let some = Filter::new(kind::<ConfigMap>(), NAMESPACE, labels, &Fields::default()).unwrap();
    let list = async |token: &str| {
        let params = params(some.clone(), 1, token);
        gateway
            .registry
            .list(&RequestContext::of_server(), &params)
            .await
    };
    let first = list("").await.unwrap();
    assert_eq!(first.remaining, None);
    let options = DeleteOptions::default();
    gateway.delete::<ConfigMap>("b", options).await.unwrap();
    memory.compact(gateway.store.revision().await.unwrap());
    let error = list(&first.continue_token).await.unwrap_err();
    assert_eq!(error.reason, Reason::Expired);
    let token = error.continue_token.clone().unwrap();
    assert_eq!(*error.to_status().metadata.r#continue, *token);
    let second = list(&token).await.unwrap();
    assert_eq!(names(&second), ["c"]);
    assert!(second.revision > first.revision);
    assert_eq!(second.remaining, None);
    let third = list(&second.continue_token).await.unwrap();
    assert_eq!(third.revision, second.revision);
    assert_eq!(
        (names(&third), third.continue_token.as_str()),
        (vec!["d"], "")
    );
}

#[tokio::test]
async fn pages_with_a_selector_have_all_selected_objects() {
    let gateway = TestGateway::start().await;
    for number in 0..20 {
        let value = if number % 3 == 0 { "yes" } else { "no" };
        gateway
            .create(&config_map(&format!("m{number:02}"), value))
            .await
            .unwrap();
    }
    let some = || {
        let labels = Selector::parse("value=yes").unwrap();
        Filter::new(kind::<ConfigMap>(), "", labels, &Fields::default()).unwrap()
    };
    let mut found = BTreeSet::new();
    let mut token = String::new();
    loop {
        let list = gateway
            .registry
            .list(&RequestContext::of_server(), &params(some(), 2, &token))
            .await
            .unwrap();
        found.extend(names(&list).into_iter().map(str::to_owned));
        token = list.continue_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(found.len(), 7);
}

#[tokio::test]
async fn an_invalid_token_is_a_bad_request() {
    let gateway = TestGateway::start().await;
    let all = Filter::all(kind::<ConfigMap>(), "");
    let error = gateway
        .registry
        .list(&RequestContext::of_server(), &params(all, 2, "x"))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::BadRequest);
}

/// Checks S7 within one gateway: a list at the newest revision has no object that was deleted before.
#[tokio::test]
async fn a_consistent_list_has_every_acknowledged_write() {
    let gateway = TestGateway::start().await;
    for round in 0..20 {
        let name = format!("m{round}");
        gateway.create(&config_map(&name, "1")).await.unwrap();
        let all = Filter::all(kind::<ConfigMap>(), "");
        let list = gateway
            .registry
            .list(&RequestContext::of_server(), &params(all.clone(), 0, ""))
            .await
            .unwrap();
        assert_eq!(names(&list), [name.as_str()]);
        gateway
            .delete::<ConfigMap>(&name, DeleteOptions::default())
            .await
            .unwrap();
        let list = gateway
            .registry
            .list(&RequestContext::of_server(), &params(all, 0, ""))
            .await
            .unwrap();
        assert!(names(&list).is_empty());
    }
}

#[tokio::test]
async fn delete_collection_deletes_the_selected_objects() {
    let gateway = TestGateway::start().await;
    for (name, value) in [("a", "yes"), ("b", "no"), ("c", "yes")] {
        gateway.create(&config_map(name, value)).await.unwrap();
    }
    let labels = Selector::parse("value=yes").unwrap();
    let some = Filter::new(kind::<ConfigMap>(), NAMESPACE, labels, &Fields::default()).unwrap();
    let context = RequestContext::of_server();
    let options = DeleteOptions::default();
    let deleted = gateway
        .registry
        .delete_collection(&context, &params(some, 0, ""), &options)
        .await;
    assert_eq!(names(&deleted.unwrap()), ["a", "c"]);
    let all = Filter::all(kind::<ConfigMap>(), "");
    let left = gateway
        .registry
        .list(&context, &params(all, 0, ""))
        .await
        .unwrap();
    assert_eq!(names(&left), ["b"]);
}

/// The store may keep the revision for longer.
#[tokio::test]
async fn an_old_token_expires_and_can_be_continued_at_the_newest_revision() {
    let gateway = TestGateway::start().await;
    for name in ["a", "b"] {
        gateway.create(&config_map(name, "1")).await.unwrap();
    }
    let all = || Filter::all(kind::<ConfigMap>(), NAMESPACE);
    let context = RequestContext::of_server();
    let list = async |token: &str| {
        let params = params(all(), 1, token);
        gateway.registry.list(&context, &params).await
    };
    let first = list("").await.unwrap();
    let parts: Vec<_> = first.continue_token.splitn(3, '/').collect();
    let old = format!("{}/1000/{}", parts[0], parts[2]);
    let error = list(&old).await.unwrap_err();
    assert_eq!(error.reason, Reason::Expired);
    let second = list(&error.continue_token.unwrap()).await.unwrap();
    assert_eq!(names(&second), ["b"]);
}
