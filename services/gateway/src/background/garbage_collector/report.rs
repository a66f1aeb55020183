//! Events about owner references that name an owner in another namespace.

use jiff::Timestamp;
use setpoint_codec::kind_of;
use setpoint_model::hash::fnv32a;
use setpoint_proto::core::{Event, EventSource, ObjectReference};
use setpoint_proto::meta::{ObjectMeta, OwnerReference};
use setpoint_proto::{ApiError, Reason};

use super::node::Node;
use super::task::Outcome;
use crate::registry::{Registry, RequestContext, Target};

const REASON: &str = "OwnerRefInvalidNamespace";
const COMPONENT: &str = "garbage-collector-controller";

/// Creates a Warning Event about such a reference. Its name is that of every other gateway's, so there is only one.
pub(super) async fn report(
    registry: &Registry,
    context: &RequestContext,
    node: &Node,
    owner: &OwnerReference,
) -> Result<Outcome, ApiError> {
    let event = event(node, owner, Timestamp::now());
    let target = Target::new(kind_of::<Event>(), &event.metadata.namespace, "", "")?;
    match registry.create(context, &target, Box::new(event)).await {
        // A namespace that is being deleted accepts no Events.
        Err(error) if ![Reason::AlreadyExists, Reason::Forbidden].contains(&error.reason) => {
            Err(error)
        }
        _ => Ok(Outcome::Done),
    }
}

fn event(node: &Node, owner: &OwnerReference, now: Timestamp) -> Event {
    let Node { kind, key, uid, .. } = node;
    let pair = fnv32a(format!("{uid}\n{}", owner.uid).as_bytes());
    let namespace = match key.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    };
    Event {
        metadata: ObjectMeta {
            namespace: namespace.into(),
            name: format!("{}.{pair:08x}", key.name),
            ..Default::default()
        },
        involved_object: ObjectReference {
            kind: kind.kind.clone(),
            api_version: kind.api_version(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: uid.clone(),
            ..Default::default()
        },
        reason: REASON.into(),
        message: message(&key.namespace, owner),
        source: EventSource {
            component: COMPONENT.into(),
            ..Default::default()
        },
        first_timestamp: now.into(),
        last_timestamp: now.into(),
        count: 1,
        r#type: "Warning".into(),
        reporting_component: COMPONENT.into(),
        ..Default::default()
    }
}

fn message(namespace: &str, owner: &OwnerReference) -> String {
    format!(
        "ownerRef [{}/{}, namespace: {namespace}, name: {}, uid: {}] does not exist in namespace {namespace:?}",
        owner.api_version, owner.kind, owner.name, owner.uid
    )
}
