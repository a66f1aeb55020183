//! Events about differences between the cache and its store.

use crate::registry::Registry;

const REASON: &str = "CacheInconsistent";

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
            let message = format!("The cache of {instance} was reloaded: {difference}");
            self.record_warning(instance, REASON, message).await;
        }
    }
}
