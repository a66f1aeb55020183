//! Reads the configurations of authentication and authorization again when their files change. One that is not valid
//! leaves the one before in force.

use std::future::ready;
use std::path::PathBuf;

use super::settings_file::FileSettings;
use crate::metrics::ConfigReloads;
use crate::registry::Registry;
use crate::request::{authentication, authorization};

impl Registry {
    /// Follows the file of the configuration of authentication, whose content is in force. `instance` is the gateway
    /// that reports in Events. Runs until dropped.
    pub async fn follow_authentication(&self, path: PathBuf, instance: &str) {
        let reloads = ConfigReloads::authentication(instance);
        let settings = FileSettings {
            name: "authentication configuration",
            reason: "AuthenticationConfigurationInvalid",
            count: &|is_valid| reloads.count(is_valid),
        };
        let apply = |path: PathBuf| {
            let read = authentication::read_configuration(&path);
            ready(read.and_then(|configuration| self.authenticator().reload(configuration)))
        };
        self.follow_file(settings, path, instance, apply).await;
    }

    /// Follows the file of the configuration of authorization, as [`Self::follow_authentication`].
    pub async fn follow_authorization(&self, path: PathBuf, instance: &str) {
        let reloads = ConfigReloads::authorization(instance);
        let settings = FileSettings {
            name: "authorization configuration",
            reason: "AuthorizationConfigurationInvalid",
            count: &|is_valid| reloads.count(is_valid),
        };
        let apply = |path: PathBuf| {
            let read = authorization::read_configuration(&path);
            ready(read.and_then(|configuration| self.authorizer().reload(configuration)))
        };
        self.follow_file(settings, path, instance, apply).await;
    }
}
