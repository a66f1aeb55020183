//! The registry as the gateway of the aggregator.

use setpoint_codec::kind_of;
use setpoint_proto::core::Secret;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::cache::Cache;

use crate::aggregation::{FrontProxy, Gateway};
use crate::dial_policy::DialPolicy;
use crate::registry::{Registry, RequestContext, Target};

#[tonic::async_trait]
impl Gateway for Registry {
    fn cache(&self) -> &Cache {
        Registry::cache(self)
    }

    fn dial_policy(&self) -> &DialPolicy {
        Registry::dial_policy(self)
    }

    fn front_proxy(&self) -> &FrontProxy {
        &self.aggregator().front_proxy
    }

    async fn create_secret(&self, namespace: &str, secret: Secret) -> Result<(), ApiError> {
        let context = RequestContext::of_server().by("gateway");
        let target = Target::new(kind_of::<Secret>(), namespace, "", "")?;
        match self.create(&context, &target, Box::new(secret)).await {
            Err(error) if error.reason != Reason::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }
}
