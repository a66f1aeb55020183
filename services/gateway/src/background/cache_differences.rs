//! Events about differences between the cache and its store.

use jiff::Timestamp;
use setpoint_codec::kind_of;
use setpoint_model::Key;
// The object of the Events, since there is none for a gateway.
use setpoint_model::replicas::SYSTEM_NAMESPACE as NAMESPACE;
use setpoint_proto::ApiError;
use setpoint_proto::core::{Event, EventSource, Namespace, ObjectReference};
use setpoint_proto::meta::ObjectMeta;
use setpoint_store::cache::Difference;

use crate::registry::{AtLeast, Registry, RequestContext, Target};

const REASON: &str = "CacheInconsistent";
const COMPONENT: &str = "gateway";
/// The namespace of Events about cluster-scoped objects.
const EVENTS: &str = "default";

impl Registry {
    /// Creates a Warning Event about the Namespace `setpoint-system` for each difference between the cache and its
    /// store. Runs until dropped. `instance` is the gateway that reports.
    pub async fn record_differences(&self, instance: &str) {
        let mut differences = self.cache().differences();
        while differences.changed().await.is_ok() {
            let difference = differences.borrow_and_update().clone();
            let Some(difference) = difference else {
                continue;
            };
            if let Err(error) = self.record_difference(instance, &difference).await {
                tracing::warn!(%error, "creating an Event about a cache difference failed");
            }
        }
    }

    async fn record_difference(
        &self,
        instance: &str,
        difference: &Difference,
    ) -> Result<(), ApiError> {
        let target = Target::new(kind_of::<Event>(), EVENTS, "", "")?;
        let about = self.system_namespace().await?;
        let event = event(instance, difference, about, Timestamp::now());
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

fn event(instance: &str, difference: &Difference, about: ObjectReference, now: Timestamp) -> Event {
    Event {
        metadata: ObjectMeta {
            namespace: EVENTS.into(),
            name: format!("{NAMESPACE}.{:016x}", now.as_nanosecond()),
            ..Default::default()
        },
        involved_object: about,
        reason: REASON.into(),
        message: format!("The cache of {instance} was reloaded: {difference}"),
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
