//! Tests of what all plugins have in common, over a map of objects.

use std::sync::Arc;

use serde_json::{Value, json};
use setpoint_codec::{Object, kind_of};
use setpoint_kinds::Target;
use setpoint_proto::core::{LimitRange, Namespace, Pod, ResourceQuota, ServiceAccount};
use setpoint_proto::node::RuntimeClass;
use setpoint_proto::scheduling::PriorityClass;
use setpoint_proto::{ApiError, Reason, Resource};
use setpoint_store::Expect;
use setpoint_store::cache::AtLeast;

use super::selection::NAMES;
use super::{Plugins, Selection};
use crate::admission::reader::map::MapReader;
use crate::admission::{Attributes, Reservation};
use crate::request_context::RequestContext;

fn object<T: Resource>(fields: Value) -> Box<dyn Object> {
    kind_of::<T>()
        .from_json(fields.to_string().as_bytes())
        .unwrap()
}

fn of<T: Resource>(name: &str, mut fields: Value) -> Box<dyn Object> {
    let kind = kind_of::<T>();
    fields["apiVersion"] = kind.api_version().into();
    fields["kind"] = kind.kind.clone().into();
    fields["metadata"]["name"] = name.into();
    if kind.namespaced {
        fields["metadata"]["namespace"] = "shop".into();
    }
    object::<T>(fields)
}

fn pod() -> Box<dyn Object> {
    let spec = json!({
        "containers": [{"name": "web", "image": "nginx"}],
        "runtimeClassName": "slow",
    });
    of::<Pod>("web", json!({ "spec": spec }))
}

/// A namespace and all that a Pod in it names.
fn shop() -> MapReader {
    let limits = json!({"spec": {"limits": [{
        "type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"},
    }]}});
    MapReader::default()
        .with(&*of::<Namespace>("shop", json!({})))
        .with(&*of::<ServiceAccount>("default", json!({})))
        .with(&*of::<LimitRange>("limits", limits))
        .with(&*of::<RuntimeClass>("slow", json!({"handler": "slow"})))
        .with(&*of::<PriorityClass>(
            "normal",
            json!({"value": 7, "globalDefault": true}),
        ))
}

struct Creation {
    context: RequestContext,
    target: Target,
    plugins: Plugins,
}

impl Creation {
    fn over(reader: MapReader) -> Self {
        Self {
            context: RequestContext::of_server(),
            target: Target::new(kind_of::<Pod>(), "shop", "web", "").unwrap(),
            plugins: Plugins::new(reader),
        }
    }

    fn request(&self) -> Attributes<'_> {
        Attributes::of_create(&self.context, &self.target)
    }

    async fn reserve(&self) -> Result<Reservation, ApiError> {
        let mut pod = pod();
        self.plugins
            .reserve(self.request(), &mut *pod, AtLeast::Any)
            .await
    }
}

#[test]
fn plugins_are_in_the_order_that_upstream_recommends() {
    let mut plugins = Plugins::new(MapReader::default());
    plugins.ask(&Arc::default(), &Arc::default());
    let names = plugins.names().map(|(name, _)| name);
    let names: Vec<_> = names.filter(|name| NAMES.contains(name)).collect();
    assert_eq!(names, NAMES);
    let off = plugins.names().filter(|(_, is_enabled)| !is_enabled);
    let off: Vec<_> = off.map(|(name, _)| name).collect();
    let enforcement = "OwnerReferencesPermissionEnforcement";
    assert_eq!(off, [enforcement, "DenyServiceExternalIPs"]);
    let on = [enforcement.to_owned()];
    plugins.select(&Selection::new(&on, &["Priority".into()]).unwrap());
    let enabled = |name: &str| plugins.names().any(|one| one == (name, true));
    assert!(enabled(enforcement) && !enabled("Priority"));
}

/// Otherwise an object that a webhook has changed would be completed twice.
#[tokio::test]
async fn an_object_that_is_complete_is_not_changed_again() {
    let creation = Creation::over(shop());
    let mut pod = pod();
    let (request, plugins) = (creation.request(), &creation.plugins);
    plugins.admit(request, &mut *pod).await.unwrap();
    setpoint_kinds::of(pod.kind()).fill_defaults(&mut *pod);
    let spec = pod.downcast_ref::<Pod>().unwrap().spec.clone();
    assert_eq!(spec.priority, Some(7));
    assert_eq!(spec.priority_class_name, "normal");
    assert_eq!(spec.service_account_name, "default");
    assert_eq!(spec.tolerations.len(), 2);
    let requests = &spec.containers[0].resources.requests;
    assert_eq!(requests["cpu"].string, "500m");
    plugins.admit(request, &mut *pod).await.unwrap();
    assert_eq!(pod.downcast_ref::<Pod>().unwrap().spec, spec);
}

#[tokio::test]
async fn a_new_object_needs_a_namespace_that_stays_as_it_is() {
    let nowhere = Creation::over(MapReader::default());
    let error = nowhere.plugins.admit(nowhere.request(), &mut *pod()).await;
    assert_eq!(error.unwrap_err().reason, Reason::NotFound);
    let ended = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let ending = Creation::over(MapReader::default().with(&*of::<Namespace>("shop", ended)));
    let error = ending.plugins.admit(ending.request(), &mut *pod()).await;
    assert_eq!(error.unwrap_err().reason, Reason::Forbidden);
    assert_eq!(
        ending.reserve().await.err().unwrap().reason,
        Reason::Forbidden
    );
    let reservation = Creation::over(shop()).reserve().await.unwrap();
    let keys: Vec<_> = reservation
        .preconditions
        .iter()
        .map(|one| &*one.key)
        .collect();
    assert_eq!(keys, ["/registry/namespaces/shop"]);
    assert!(matches!(reservation.preconditions[0].expect, Expect::At(_)));
    assert_eq!(reservation.preconditions[0].put, None);
}

/// A quota is charged in the transaction of the write, and writes to its namespace wait for each other.
#[tokio::test(start_paused = true)]
async fn a_reservation_holds_its_lock_until_the_write_has_ended() {
    let quota = json!({"status": {"hard": {"pods": "2"}, "used": {"pods": "0"}}});
    let creation = Creation::over(shop().with(&*of::<ResourceQuota>("quota", quota)));
    let first = creation.reserve().await.unwrap();
    let charge = first.preconditions.iter().find(|one| one.put.is_some());
    assert_eq!(charge.unwrap().key, "/registry/resourcequotas/shop/quota");
    let waited = creation.reserve().await.err().unwrap();
    assert_eq!(waited.reason, Reason::Timeout);
    drop(first);
    assert!(creation.reserve().await.is_ok());
}
