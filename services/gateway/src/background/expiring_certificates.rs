//! Events about certificates of a gateway that are about to expire.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_host::certificates::Certificates;
use tokio::time::sleep;

use crate::registry::Registry;

const REASON: &str = "CertificateExpiring";
/// The interval of looking at the certificates.
const INTERVAL: Duration = Duration::from_secs(10);

impl Registry {
    /// Creates a Warning Event for each certificate of the gateway that is about to expire, one until it is renewed.
    /// Runs until dropped.
    pub async fn record_expiring(&self, certificates: Certificates, instance: &str) {
        let mut told = BTreeMap::new();
        loop {
            for expiring in certificates.expiring(Timestamp::now()) {
                let message = expiring.to_string();
                let before = told.insert(expiring.certificate, expiring.expires);
                if before != Some(expiring.expires) {
                    let message = format!("{message} (of {instance})");
                    self.record_warning(instance, REASON, message).await;
                }
            }
            sleep(INTERVAL).await;
        }
    }
}
