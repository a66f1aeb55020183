//! Keeps the objects that every namespace has: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt` (upstream:
//! the serviceaccount-controller and the root-ca-certificate-publisher).
//!
//! Every gateway runs it. The writes are idempotent: a create of what exists is no error, and a change is computed from the
//! current object.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{SelectAll, select_all};
use setpoint_codec::{Object, kind_of};
use setpoint_model::Key;
use setpoint_model::selector::{Fields, Selector};
use setpoint_proto::core::{ConfigMap, Namespace, ServiceAccount};
use setpoint_proto::{ApiError, EventType, NAMESPACE_TERMINATING, Reason, Resource};
use tokio::time::{MissedTickBehavior, interval};

use crate::registry::write::current::Current;
use crate::registry::{
    AtLeast, Event, Filter, Registry, RequestContext, Start, Target, Watch, WatchSpec, errors,
};

/// The account of Pods that name none.
pub(crate) const DEFAULT_ACCOUNT: &str = "default";
const ROOT_CA: &str = "kube-root-ca.crt";
const CA_KEY: &str = "ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
const DESCRIPTION_OF_CA: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
    endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
    distributions of Kubernetes clusters.";

/// The interval of attempts after errors, and the delay before the watches are restarted.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Keeps the objects until dropped.
pub(crate) async fn run(registry: &Registry) {
    loop {
        if let Err(error) = follow(registry).await {
            tracing::debug!(%error, "a watch of the objects of namespaces ended; restarting");
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Restores the objects whenever a namespace or one of them changes, until a watch ends.
async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let mut events = watch_all(registry).await?;
    let mut retries = interval(RETRY_INTERVAL);
    retries.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failed = HashSet::new();
    loop {
        let namespaces = tokio::select! {
            Some(event) = events.next() => namespace_of(&event?).into_iter().collect(),
            _ = retries.tick(), if !failed.is_empty() => std::mem::take(&mut failed),
        };
        for namespace in namespaces {
            if let Err(error) = restore(registry, &namespace).await {
                tracing::debug!(namespace, %error, "restoring the objects of a namespace failed; trying again");
                failed.insert(namespace);
            }
        }
    }
}

async fn watch_all(registry: &Registry) -> Result<SelectAll<Watch>, ApiError> {
    let watched = [
        Filter::all(kind_of::<Namespace>(), ""),
        named(kind_of::<ServiceAccount>(), "", DEFAULT_ACCOUNT)?,
        named(kind_of::<ConfigMap>(), "", ROOT_CA)?,
    ];
    let mut watches = Vec::new();
    for filter in watched {
        let spec = WatchSpec {
            filter,
            start: Start::Initial(AtLeast::Any),
            bookmarks: false,
        };
        watches.push(registry.cache().watch(spec).await?);
    }
    Ok(select_all(watches))
}

/// Returns the filter of the objects with a name.
pub(super) fn named(
    kind: &'static setpoint_codec::Kind,
    namespace: &str,
    name: &str,
) -> Result<Filter, ApiError> {
    let fields = Fields::parse(&format!("metadata.name={name}"));
    let fields = fields.map_err(|error| ApiError::new(Reason::BadRequest, error.to_string()))?;
    Filter::new(kind, namespace, Selector::everything(), &fields)
}

/// Returns the namespace whose objects an event may concern.
fn namespace_of(event: &Event) -> Option<String> {
    let object = &event.object;
    let is_namespace = object.kind == kind_of::<Namespace>();
    match (is_namespace, event.r#type == EventType::Deleted) {
        (true, true) => None,
        (true, false) => Some(object.key.name.clone()),
        (false, _) => Some(object.key.namespace.clone()),
    }
}

/// Creates the objects of a namespace that it lacks, and corrects the bundle. Does nothing while it is being deleted.
async fn restore(registry: &Registry, namespace: &str) -> Result<(), ApiError> {
    if !is_active(registry, namespace).await? {
        return Ok(());
    }
    let restored = tokio::join!(
        restore_account(registry, namespace),
        restore_ca(registry, namespace)
    );
    unless_terminating(restored.0.and(restored.1))
}

async fn is_active(registry: &Registry, namespace: &str) -> Result<bool, ApiError> {
    let key = Key::new("", namespace);
    let kind = kind_of::<Namespace>();
    let Some(cached) = registry.cache().get(kind, &key, AtLeast::Any).await? else {
        return Ok(false);
    };
    let namespace = errors::readable(cached.decode())?;
    Ok(namespace.meta().deletion_timestamp.is_none())
}

fn unless_terminating(result: Result<(), ApiError>) -> Result<(), ApiError> {
    let ends = |error: &ApiError| {
        let terminating =
            |cause: &setpoint_proto::meta::StatusCause| cause.reason == NAMESPACE_TERMINATING;
        error.reason == Reason::NotFound || error.causes().iter().any(terminating)
    };
    match result {
        Err(error) if !ends(&error) => Err(error),
        _ => Ok(()),
    }
}

async fn restore_account(registry: &Registry, namespace: &str) -> Result<(), ApiError> {
    let mut account = ServiceAccount::default();
    account.metadata.name = DEFAULT_ACCOUNT.into();
    let context = RequestContext::default().by("service-account-controller");
    create_if_absent(registry, &context, namespace, account).await
}

async fn restore_ca(registry: &Registry, namespace: &str) -> Result<(), ApiError> {
    let context = RequestContext::default().by("root-ca-cert-publisher");
    let data = BTreeMap::from([(CA_KEY.to_owned(), registry.server().ca_bundle.clone())]);
    let key = Key::new(namespace, ROOT_CA);
    let kind = kind_of::<ConfigMap>();
    let Some(cached) = registry.cache().get(kind, &key, AtLeast::Any).await? else {
        let mut published = ConfigMap::default();
        published.metadata.name = ROOT_CA.into();
        publish(&mut published, &data);
        return create_if_absent(registry, &context, namespace, published).await;
    };
    let object = errors::readable(cached.decode())?;
    let current = object.downcast_ref::<ConfigMap>();
    if current.is_none_or(|current| is_published(current, &data)) {
        return Ok(());
    }
    let target = Target::whole(kind, &key);
    let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
        let new = slot.insert(old.object.clone_box());
        if let Some(new) = new.downcast_mut::<ConfigMap>() {
            publish(new, &data);
        }
        Ok(())
    };
    let updated = registry.guaranteed_update(&context, &target, &mut mutate);
    updated.await.map(|_| ())
}

fn publish(published: &mut ConfigMap, data: &BTreeMap<String, String>) {
    published.data.clone_from(data);
    let annotations = &mut published.metadata.annotations;
    annotations.insert(DESCRIPTION.into(), DESCRIPTION_OF_CA.into());
}

/// Returns whether the data is right and some description is there.
fn is_published(current: &ConfigMap, data: &BTreeMap<String, String>) -> bool {
    let described = current.metadata.annotations.get(DESCRIPTION);
    current.data == *data && described.is_some_and(|text| !text.is_empty())
}

/// Creates an object, unless one of its name exists.
pub(super) async fn create_if_absent<T: Resource + Object>(
    registry: &Registry,
    context: &RequestContext,
    namespace: &str,
    object: T,
) -> Result<(), ApiError> {
    let (kind, name) = (kind_of::<T>(), Resource::meta(&object).name.clone());
    let key = Key::new(namespace, &name);
    let cached = registry.cache().get(kind, &key, AtLeast::Any).await?;
    if cached.is_some() {
        return Ok(());
    }
    let target = Target::new(kind, namespace, "", "")?;
    match registry.create(context, &target, Box::new(object)).await {
        Err(error) if error.reason != Reason::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
