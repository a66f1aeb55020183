//! Creates the objects that every cluster has: namespaces, priority classes, the range of the addresses of Services, a
//! class of local volumes, priority levels and flow schemas (upstream: the system-namespaces controller, the post-start
//! hooks of the scheduling and flow-control APIs, and the controller of the default ServiceCIDR). Those that a cluster
//! cannot be without are created again when they are gone.

use std::time::Duration;

use setpoint_codec::Object;
use setpoint_kinds::{flowcontrol, priorityclass, servicecidr, storageclass};
use setpoint_model::{Key, replicas};
use setpoint_proto::core::Namespace;
use setpoint_proto::{ApiError, Reason};
use setpoint_task::Backoff;
use tokio::time::sleep;

use crate::registry::{AtLeast, Registry, RequestContext, Target};

const NAMESPACES: [&str; 6] = [
    "default",
    replicas::NODE_LEASES,
    "kube-public",
    "kube-system",
    replicas::NAMESPACE,
    replicas::SYSTEM_NAMESPACE,
];

/// The first delay after a failure.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// The longest delay at the start, when the gateway is not ready yet.
const MAX_START_DELAY: Duration = Duration::from_secs(2);
/// The interval of checks, and the longest delay after failures. Upstream checks every minute.
const INTERVAL: Duration = Duration::from_secs(30);

impl Registry {
    /// Creates the initial objects, and retries until each exists.
    pub(crate) async fn create_system_objects(&self) {
        let objects: Vec<_> = self
            .permanent_objects()
            .chain(deletable_objects())
            .collect();
        let mut backoff = Backoff::new(RETRY_DELAY, MAX_START_DELAY);
        while let Err(error) = self.create_absent(&objects).await {
            tracing::debug!(%error, "creating the initial objects failed; trying again");
            sleep(backoff.next_delay()).await;
        }
    }

    /// Creates the permanent objects again that are gone, until dropped.
    pub(crate) async fn keep_system_objects(&self) {
        let objects: Vec<_> = self.permanent_objects().collect();
        let mut backoff = Backoff::new(RETRY_DELAY, INTERVAL);
        loop {
            let delay = match self.create_absent(&objects).await {
                Ok(()) => {
                    backoff.reset();
                    INTERVAL
                }
                Err(error) => {
                    tracing::warn!(%error, "creating objects that every cluster has failed; trying again");
                    backoff.next_delay()
                }
            };
            sleep(delay).await;
        }
    }

    /// Creates the objects that do not exist. One that cannot be created does not hold back the others.
    ///
    /// # Errors
    /// The last one.
    async fn create_absent(&self, objects: &[Box<dyn Object>]) -> Result<(), ApiError> {
        let mut outcome = Ok(());
        for object in objects {
            outcome = self.create_if_absent(&**object).await.and(outcome);
        }
        outcome
    }

    async fn create_if_absent(&self, object: &dyn Object) -> Result<(), ApiError> {
        let (kind, key) = (object.kind(), Key::of(object.meta()));
        let cached = self.cache().get(kind, &key, AtLeast::Any).await?;
        if cached.is_some() {
            return Ok(());
        }
        let context = RequestContext::of_server().by("gateway");
        let target = Target::new(kind, "", "", "")?;
        match self.create(&context, &target, object.clone_box()).await {
            Err(error) if error.reason != Reason::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the objects that are created again when they are gone.
    fn permanent_objects(&self) -> impl Iterator<Item = Box<dyn Object>> + use<> {
        let namespaces = NAMESPACES.map(|name| {
            let mut namespace = Namespace::default();
            namespace.metadata.name = name.into();
            boxed(namespace)
        });
        let range = servicecidr::default_range(&self.service_ranges().to_string());
        namespaces
            .into_iter()
            .chain(priorityclass::system_classes().map(boxed))
            .chain([boxed(range)])
            .chain(flowcontrol::levels().map(boxed))
            .chain(flowcontrol::schemas().map(boxed))
    }
}

/// Returns the objects that a user may delete.
fn deletable_objects() -> impl Iterator<Item = Box<dyn Object>> {
    [boxed(storageclass::local_path())].into_iter()
}

fn boxed(object: impl Object) -> Box<dyn Object> {
    Box::new(object)
}
