//! Events about certificates of a gateway that are about to expire.

use setpoint_host::certificates::{Certificates, EXPIRING};

use crate::registry::Registry;

impl Registry {
    /// Creates a Warning Event for each certificate of the gateway that is about to expire, one until it is renewed.
    /// Runs until dropped.
    pub async fn record_expiring(&self, certificates: Certificates, instance: &str) {
        let mut expiries = certificates.expiries();
        loop {
            let message = format!("{} (of {instance})", expiries.next().await);
            self.record_warning(instance, EXPIRING, message).await;
        }
    }
}
