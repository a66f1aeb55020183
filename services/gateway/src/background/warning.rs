//! Warnings of a gateway about itself, as Events.

use jiff::Timestamp;
use setpoint_codec::kind_of;
use setpoint_model::Key;
// The object of the Events, since there is none for a gateway.
use setpoint_model::replicas::SYSTEM_NAMESPACE as NAMESPACE;
use setpoint_proto::ApiError;
use setpoint_proto::core::{Event, EventSource, Namespace, ObjectReference};
use setpoint_proto::meta::ObjectMeta;

use crate::registry::{AtLeast, Registry, RequestContext, Target};

const COMPONENT: &str = "gateway";
/// The namespace of Events about cluster-scoped objects.
const EVENTS: &str = "default";

impl Registry {
    /// Creates a Warning Event about the Namespace `setpoint-system`; a failure is logged. `instance` is the gateway
    /// that reports.
    pub(super) async fn record_warning(&self, instance: &str, reason: &str, message: String) {
        if let Err(error) = self.create_warning(instance, reason, message).await {
            tracing::warn!(%error, reason, "creating an Event failed");
        }
    }

    async fn create_warning(
        &self,
        instance: &str,
        reason: &str,
        message: String,
    ) -> Result<(), ApiError> {
        let target = Target::new(kind_of::<Event>(), EVENTS, "", "")?;
        let about = self.system_namespace().await?;
        let event = Event {
            reason: reason.into(),
            message,
            ..event(instance, about, Timestamp::now())
        };
        let context = RequestContext::of_server().by(COMPONENT);
        self.create(&context, &target, Box::new(event)).await?;
        Ok(())
    }

    /// Returns a reference to [`NAMESPACE`], without a uid if it does not exist.
    async fn system_namespace(&self) -> Result<ObjectReference, ApiError> {
        let (kind, key) = (kind_of::<Namespace>(), Key::new("", NAMESPACE));
        let namespace = self.cache().get(kind, &key, AtLeast::Any).await?;
        let namespace = namespace.map(|cached| cached.decode()).transpose()?;
        Ok(ObjectReference {
            kind: kind.kind.clone(),
            api_version: kind.api_version(),
            name: NAMESPACE.into(),
            uid: namespace.map_or_else(String::new, |namespace| namespace.meta().uid.clone()),
            ..Default::default()
        })
    }
}

fn event(instance: &str, about: ObjectReference, now: Timestamp) -> Event {
    Event {
        metadata: ObjectMeta {
            namespace: EVENTS.into(),
            name: format!("{NAMESPACE}.{:016x}", now.as_nanosecond()),
            ..Default::default()
        },
        involved_object: about,
        source: EventSource {
            component: COMPONENT.into(),
            host: instance.into(),
        },
        first_timestamp: now.into(),
        last_timestamp: now.into(),
        count: 1,
        r#type: "Warning".into(),
        reporting_component: COMPONENT.into(),
        reporting_instance: instance.into(),
        ..Default::default()
    }
}
