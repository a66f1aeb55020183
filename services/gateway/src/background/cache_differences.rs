//! Events about a cache that differed from its store.

use jiff::Timestamp;
use setpoint_codec::kinds;
use setpoint_model::Key;
// The Events are about this namespace: no object stands for a gateway.
use setpoint_model::replicas::SYSTEM_NAMESPACE as NAMESPACE;
use setpoint_proto::core::{Event, EventSource, ObjectReference};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Resource as _};
use setpoint_store::cache::Difference;

use crate::registry::write::namespace_lifecycle;
use crate::registry::{AtLeast, Registry, RequestContext, Target};

const REASON: &str = "CacheInconsistent";
const COMPONENT: &str = "gateway";
/// The namespace of Events about objects that have none.
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
                tracing::warn!(%error, "no Event could be created about a cache that differed from its store");
            }
        }
    }

    async fn record_difference(
        &self,
        instance: &str,
        difference: &Difference,
    ) -> Result<(), ApiError> {
        let kind = kinds()
            .by_resource(Event::RESOURCE)
            .expect("its message is compiled in");
        let target = Target::new(kind, EVENTS, "", "")?;
        let about = self.own_namespace().await?;
        let event = event(instance, difference, about, Timestamp::now());
        self.create(
            &RequestContext::default().by(COMPONENT),
            &target,
            Box::new(event),
        )
        .await?;
        Ok(())
    }

    /// Returns a reference to [`NAMESPACE`]; without a uid where it is not there.
    async fn own_namespace(&self) -> Result<ObjectReference, ApiError> {
        let (kind, key) = (namespace_lifecycle::kind(), Key::new("", NAMESPACE));
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
        message: format!("The cache of {instance} was read anew: {difference}"),
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
