//! Keeps [tokens of ServiceAccounts in Secrets](setpoint_model::legacy_token) (upstream: the tokens controller of the
//! controller manager). It is here because the keys that sign are.
//!
//! ```text
//! Secret that names an account ─┬▶ the account exists: token, namespace, CA bundle, annotations, if one is missing
//!                               └▶ it does not, or is another: the Secret is deleted
//! Secret that is gone ──────────▶ the account no longer lists it
//! ```
//! The CA bundle is that of the ConfigMap `kube-root-ca.crt` of the namespace. Every gateway runs it; each writes the
//! version that it has seen, so that one of them fills a Secret. Another controller may do the same: what a Secret has
//! is not replaced, but for the bundle.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use futures::stream::select_all;
use setpoint_codec::{Object, kind_of};
use setpoint_model::Key;
use setpoint_model::legacy_token::{
    ACCOUNT_NAME, ACCOUNT_UID, CA, NAMESPACE, TOKEN, TYPE, account_name, is_listed, is_of,
};
use setpoint_proto::core::{ConfigMap, Secret, ServiceAccount};
use setpoint_proto::meta::{DeleteOptions, Preconditions};
use setpoint_proto::{ApiError, EventType, Reason};

use super::attempts::{Attempts, repeat};
use super::kept::{named, selected};
use crate::cached::cached;
use crate::registry::{
    AtLeast, Event, Filter, Registry, RequestContext, Start, Target, WatchSpec, errors,
};
use crate::request::legacy_token::LegacyClaims;
use crate::request::service_account::internal;
use crate::write::current::Current;

/// The manager of the writes.
const CONTROLLER: &str = "tokens-controller";
/// The maximum number of events that are acted upon at once.
const EVENTS: usize = 1024;
/// The ConfigMap with the CA bundle of a namespace, and the key in it.
const ROOT_CA: &str = "kube-root-ca.crt";

/// Keeps the tokens until dropped.
pub(crate) async fn run(registry: &Registry) {
    repeat("account-tokens", || follow(registry)).await;
}

/// Looks at each Secret that changes, and at all of a namespace in which an account or the CA bundle changes, until a
/// watch ends.
async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let filters = [
        secrets("")?,
        Filter::all(kind_of::<ServiceAccount>(), ""),
        named(kind_of::<ConfigMap>(), "", ROOT_CA)?,
    ];
    let mut watches = Vec::new();
    for filter in filters {
        let spec = WatchSpec {
            filter,
            start: Start::Initial(AtLeast::Any),
            bookmarks: false,
        };
        watches.push(registry.cache().watch(spec).await?);
    }
    let mut events = select_all(watches).ready_chunks(EVENTS);
    let (mut touched, mut attempts) = (BTreeSet::new(), Attempts::default());
    loop {
        tokio::select! {
            Some(events) = events.next() => touch(registry, &mut touched, events).await?,
            () = attempts.next_due() => {}
            else => return Ok(()),
        }
        let due = touched.extract_if(.., |key: &Key| attempts.may_try(&key.to_string()));
        for key in due.collect::<Vec<_>>() {
            let kept = keep(registry, &key).await;
            attempts.tried(&key.to_string(), kept.is_ok());
            if let Err(error) = kept {
                tracing::debug!(secret = %key, %error, "keeping a token in a Secret failed; trying again");
                touched.insert(key);
            }
        }
    }
}

/// Adds the Secrets that events are about.
async fn touch(
    registry: &Registry,
    touched: &mut BTreeSet<Key>,
    events: Vec<Result<Event, ApiError>>,
) -> Result<(), ApiError> {
    let mut namespaces = BTreeSet::new();
    for event in events {
        let event = event?;
        let (kind, key) = (event.object.kind, &event.object.key);
        if event.r#type == EventType::Bookmark {
            continue;
        }
        if kind != kind_of::<Secret>() {
            namespaces.insert(key.namespace.clone());
            continue;
        }
        if let Err(error) = unlist_deleted(registry, &event).await {
            tracing::debug!(secret = %key, %error, "an account still lists a token that is gone");
        }
        touched.insert(key.clone());
    }
    for namespace in namespaces {
        let filter = secrets(&namespace)?;
        let listed = registry.cache().list(&filter, AtLeast::Any).await?.items;
        touched.extend(listed.iter().map(|secret| secret.key.clone()));
    }
    Ok(())
}

fn secrets(namespace: &str) -> Result<Filter, ApiError> {
    selected(kind_of::<Secret>(), namespace, &format!("type={TYPE}"))
}

/// Fills or deletes a Secret.
async fn keep(registry: &Registry, key: &Key) -> Result<(), ApiError> {
    match cached::<Secret>(registry.cache(), key, AtLeast::Any).await? {
        Some(secret) => keep_one(registry, &secret).await,
        None => Ok(()),
    }
}

async fn keep_one(registry: &Registry, secret: &Secret) -> Result<(), ApiError> {
    let Some(name) = account_name(secret) else {
        return Ok(());
    };
    let namespace = &secret.metadata.namespace;
    let mut account = account(registry, namespace, name, AtLeast::Any).await?;
    let is_its = |account: &ServiceAccount| is_of(secret, account);
    if !account.as_deref().is_some_and(is_its) {
        // The Secret may be ahead of the cache of accounts.
        account = self::account(registry, namespace, name, AtLeast::Newest).await?;
    }
    match account.as_deref() {
        Some(account) if is_its(account) => fill(registry, secret, account).await,
        _ => delete(registry, secret).await,
    }
}

/// Adds what a Secret lacks.
async fn fill(
    registry: &Registry,
    secret: &Secret,
    account: &ServiceAccount,
) -> Result<(), ApiError> {
    let has = |key: &str| secret.data.get(key).is_some_and(|value| !value.is_empty());
    let bundle = bundle(registry, &secret.metadata.namespace).await?;
    let bundle = bundle.filter(|bundle| secret.data.get(CA).is_none_or(|has| has != bundle));
    if has(TOKEN) && has(NAMESPACE) && bundle.is_none() {
        return Ok(());
    }
    let mut filled = secret.clone();
    if let Some(bundle) = bundle {
        filled.data.insert(CA.into(), bundle.into());
    }
    if !has(NAMESPACE) {
        let namespace = secret.metadata.namespace.clone().into_bytes();
        filled.data.insert(NAMESPACE.into(), namespace.into());
    }
    if !has(TOKEN) {
        let key = registry.tokens().keys.signing_key().await?;
        let token = key.sign(&LegacyClaims::of(account, secret));
        let token = token.map_err(internal)?.into_bytes();
        filled.data.insert(TOKEN.into(), token.into());
    }
    let annotations = &mut filled.metadata.annotations;
    annotations.insert(ACCOUNT_NAME.into(), account.metadata.name.clone());
    annotations.insert(ACCOUNT_UID.into(), account.metadata.uid.clone());
    let target = Target::whole(kind_of::<Secret>(), &Key::of(&secret.metadata));
    let context = context();
    let written = registry.update(&context, &target, Box::new(filled));
    unless_changed(written.await)
}

/// Returns the CA bundle of a namespace; `None` if there is none, as without TLS.
async fn bundle(registry: &Registry, namespace: &str) -> Result<Option<Vec<u8>>, ApiError> {
    let key = Key::new(namespace, ROOT_CA);
    let map = cached::<ConfigMap>(registry.cache(), &key, AtLeast::Any).await?;
    let bundle = map.and_then(|mut map| map.data.remove(CA));
    Ok(bundle
        .filter(|text| !text.is_empty())
        .map(String::into_bytes))
}

async fn delete(registry: &Registry, secret: &Secret) -> Result<(), ApiError> {
    let options = DeleteOptions {
        preconditions: Some(Preconditions {
            uid: Some(secret.metadata.uid.clone()),
            ..Default::default()
        }),
        ..Default::default()
    };
    let target = Target::whole(kind_of::<Secret>(), &Key::of(&secret.metadata));
    unless_changed(registry.delete(&context(), &target, &options).await)
}

/// Removes a Secret that was deleted from the list of its account.
async fn unlist_deleted(registry: &Registry, event: &Event) -> Result<(), ApiError> {
    if event.r#type != EventType::Deleted {
        return Ok(());
    }
    let object = errors::readable(event.object.decode())?;
    let Some(secret) = object.downcast_ref::<Secret>() else {
        return Ok(());
    };
    let (namespace, name) = (&secret.metadata.namespace, &secret.metadata.name);
    let of = account_name(secret).unwrap_or_default();
    let account = account(registry, namespace, of, AtLeast::Any).await?;
    let lists = |account: &ServiceAccount| is_of(secret, account) && is_listed(account, name);
    let Some(account) = account.filter(|account| lists(account)) else {
        return Ok(());
    };
    let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
        let new = slot.insert(old.object.clone_box());
        if let Some(account) = new.downcast_mut::<ServiceAccount>()
            && lists(account)
        {
            account.secrets.retain(|listed| listed.name != *name);
        }
        Ok(())
    };
    let target = Target::whole(kind_of::<ServiceAccount>(), &Key::of(&account.metadata));
    let context = context();
    let updated = registry.guaranteed_update(&context, &target, &mut mutate);
    unless_changed(updated.await)
}

async fn account(
    registry: &Registry,
    namespace: &str,
    name: &str,
    at: AtLeast,
) -> Result<Option<Box<ServiceAccount>>, ApiError> {
    cached(registry.cache(), &Key::new(namespace, name), at).await
}

fn context() -> RequestContext {
    RequestContext::of_server().by(CONTROLLER)
}

/// A newer version of the object follows, or its deletion.
fn unless_changed<T>(written: Result<T, ApiError>) -> Result<(), ApiError> {
    match written {
        Err(error) if ![Reason::Conflict, Reason::NotFound].contains(&error.reason) => Err(error),
        _ => Ok(()),
    }
}
