//! The port through which the aggregator uses its gateway.

use setpoint_proto::ApiError;
use setpoint_proto::core::Secret;
use setpoint_store::cache::Cache;

use super::FrontProxy;
use crate::dial_policy::DialPolicy;

/// A gateway: what it reads, which addresses it may call and, beside that, the Secret that it writes.
#[tonic::async_trait]
pub(crate) trait Gateway: Send + Sync {
    /// Returns the cache, which has the APIServices.
    fn cache(&self) -> &Cache;

    /// Returns the addresses of other processes that it may call.
    fn dial_policy(&self) -> &DialPolicy;

    /// Returns its client certificate for other servers.
    fn front_proxy(&self) -> &FrontProxy;

    /// Creates a Secret, unless there is one of its name.
    ///
    /// # Errors
    /// If the Secret is not created.
    async fn create_secret(&self, namespace: &str, secret: Secret) -> Result<(), ApiError>;
}
