//! The configuration of an administrator: `EncryptionConfiguration` of `apiserver.config.k8s.io/v1`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use setpoint_document as document;

use crate::resources::GroupResource;
use crate::validation;

/// A configuration that was validated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    pub(crate) resources: Vec<Resources>,
}

/// Resources, and the providers of their values. The first one seals, all may open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resources {
    pub(crate) resources: Vec<GroupResource>,
    pub(crate) providers: Vec<Provider>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Provider {
    Identity,
    AesGcm(Vec<Key>),
    AesCbc(Vec<Key>),
    Secretbox(Vec<Key>),
    Kms(KmsProvider),
}

/// A provider of keys behind a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KmsProvider {
    pub(crate) name: String,
    pub(crate) socket: PathBuf,
    /// The time limit of a call.
    pub(crate) timeout: Duration,
}

/// A key with its name. It does not show in logs.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) secret: Vec<u8>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name: {}, Secret: [REDACTED]", self.name)
    }
}

impl Configuration {
    /// Reads a configuration in YAML or JSON. Fields that are not known are errors, as upstream.
    ///
    /// # Errors
    /// If it is malformed or not valid: the path of each wrong field, and upstream's text. No key is part of it.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let value: Value = document::yaml(text)?;
        validation::configuration(&value)
    }

    /// Reads the configuration in a file.
    ///
    /// # Errors
    /// If it cannot be read, is larger than a mebibyte, or as [`Self::read`].
    pub fn read_file(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = document::read(path).map_err(|error| {
            format!("error reading encryption provider configuration file {shown:?}: {error}")
        })?;
        if text.is_empty() {
            return Err(format!(
                "encryption provider configuration file {shown:?} is empty"
            ));
        }
        Self::read(&text).map_err(|error| format!("{error}: from file {shown}"))
    }
}
