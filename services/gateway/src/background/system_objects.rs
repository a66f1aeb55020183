//! Creates the objects that every cluster has: namespaces, priority classes, the range of the addresses of Services, a class of
//! local volumes, priority levels and flow schemas (upstream: the system-namespaces controller, the post-start hooks of the scheduling and
//! flow-control APIs, and the controller of the default ServiceCIDR).

use std::time::Duration;

use setpoint_codec::{Object, kind_of};
use setpoint_proto::core::Namespace;
use setpoint_proto::{ApiError, Reason, Resource};

use crate::kinds::{flowcontrol, priorityclass, servicecidr, storageclass};
use crate::registry::{Registry, RequestContext, Target};

const NAMESPACES: [&str; 5] = [
    "default",
    "kube-node-lease",
    "kube-public",
    "kube-system",
    "setpoint-system",
];

const RETRY_DELAY: Duration = Duration::from_millis(500);

impl Registry {
    /// Creates the initial objects, and retries until each exists.
    pub(crate) async fn create_system_objects(&self) {
        for name in NAMESPACES {
            let mut namespace = Namespace::default();
            namespace.metadata.name = name.into();
            self.create_until_it_exists(namespace).await;
        }
        for class in priorityclass::system_classes() {
            self.create_until_it_exists(class).await;
        }
        self.create_until_it_exists(servicecidr::default_range())
            .await;
        self.create_until_it_exists(storageclass::local_path())
            .await;
        for level in flowcontrol::levels() {
            self.create_until_it_exists(level).await;
        }
        for schema in flowcontrol::schemas() {
            self.create_until_it_exists(schema).await;
        }
    }

    async fn create_until_it_exists<T: Resource + Object>(&self, object: T) {
        while let Err(error) = self.create_unless_it_exists(object.clone()).await {
            let (kind, name) = (T::KIND, &Resource::meta(&object).name);
            tracing::debug!(kind, name, %error, "creating an initial object failed; trying again");
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    async fn create_unless_it_exists<T: Resource + Object>(
        &self,
        object: T,
    ) -> Result<(), ApiError> {
        let context = RequestContext::default().by("gateway");
        let target = Target::new(kind_of::<T>(), "", "", "")?;
        match self.create(&context, &target, Box::new(object)).await {
            Err(error) if error.reason != Reason::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }
}
