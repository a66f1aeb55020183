//! Keeps stored values encrypted as the configuration says.
//!
//! The configuration is read again when its file changes; one that is not valid leaves the one before in force. Objects
//! are stored anew by their next write. The keys that sign tokens have none for months, and are stored anew here.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use setpoint_encryption::{Configuration, Encryption, reloaded};
use tokio::time::sleep;

use super::settings_file::FileSettings;
use crate::registry::Registry;

const CONFIGURATION: FileSettings<'_> = FileSettings {
    name: "encryption configuration",
    reason: "EncryptionConfigurationInvalid",
    count: &reloaded,
};
/// The time between two looks at the keys that sign tokens.
const INTERVAL: Duration = Duration::from_secs(20);

impl Registry {
    /// Follows the file of the encryption configuration, whose content is in force. `instance` is the gateway that
    /// reports in Events. Runs until dropped.
    pub async fn follow_encryption(
        &self,
        encryption: &Arc<Encryption>,
        path: PathBuf,
        instance: &str,
    ) {
        let apply = |path: PathBuf| async move {
            let configuration = Configuration::read_file(&path)?;
            encryption.replace(&configuration).await
        };
        let followed = self.follow_file(CONFIGURATION, path, instance, apply);
        tokio::join!(followed, self.store_token_keys_anew());
    }

    /// Stores the keys that sign tokens anew whenever they would be stored in another form than they are.
    async fn store_token_keys_anew(&self) {
        loop {
            if let Err(error) = self.tokens().keys.store_anew().await {
                tracing::warn!(error = error.message, "storing the keys of tokens failed");
            }
            sleep(INTERVAL).await;
        }
    }
}
