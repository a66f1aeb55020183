//! The settings of the client.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;

/// The connection to the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// URL of the gateway; comma-separated if there are several.
    ///
    /// A host name may resolve to several addresses.
    pub address: String,
    /// Name that the certificates of the gateways must have; empty for the host of the address.
    ///
    /// Each process of a cluster has a certificate with the addresses of its machine, but gateways alone have this
    /// name.
    pub tls_server_name: String,
    /// Timeout of calls to the gateway; not applied to watches.
    #[serde(with = "DurationText")]
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            address: "http://127.0.0.1:6443".to_owned(),
            tls_server_name: "gateway".to_owned(),
            timeout: Duration::from_secs(10),
        }
    }
}

impl Settings {
    /// Host and port, as metrics name the gateway.
    pub(super) fn host(&self) -> String {
        let host = |uri: &str| {
            uri.split_once("://")
                .map_or(uri, |(_, host)| host)
                .to_owned()
        };
        let hosts: Vec<_> = self
            .address
            .split(',')
            .map(|uri| host(uri.trim()))
            .collect();
        hosts.join(",")
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn validate(&self) -> Result<(), Error> {
        crate::channel::validate(self)?;
        match self.timeout.is_zero() {
            true => Err(Error::Timeout),
            false => Ok(()),
        }
    }
}

/// Settings are invalid.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is not a URI.
    #[error("gateway address {address:?} is not a URI such as http://127.0.0.1:6443")]
    Address {
        /// The configured value.
        address: String,
        /// The error of the parser.
        source: tonic::transport::Error,
    },
    /// The URI has no host.
    #[error("gateway address {address:?} is not a URI such as http://127.0.0.1:6443")]
    Nowhere {
        /// The configured value.
        address: String,
    },
    /// The URI is one of TLS, and the client has no certificate.
    #[error("gateway address {address:?} needs a certificate: see the settings of the table tls")]
    NoCredentials {
        /// The configured value.
        address: String,
    },
    /// The name is neither a DNS name nor an IP address.
    #[error("tls_server_name {name:?} of the gateway is neither a DNS name nor an IP address")]
    ServerName {
        /// The configured value.
        name: String,
    },
    /// The timeout is zero.
    #[error("the gateway's timeout must be longer than zero")]
    Timeout,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_from_text_such_as_300ms() {
        let json = serde_json::json!({
            "address": "http://[::1]:1",
            "tls_server_name": "",
            "timeout": "300ms",
        });
        let settings: Settings = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(settings.timeout, Duration::from_millis(300));
        assert_eq!(serde_json::to_value(&settings).unwrap(), json);
        assert_eq!(settings.host(), "[::1]:1");
        settings.validate().unwrap();
    }

    #[test]
    fn an_address_that_is_not_a_uri_is_refused_and_named() {
        let settings = Settings {
            address: "http://a b".into(),
            ..Settings::default()
        };
        let error = settings.validate().unwrap_err().to_string();
        assert!(error.contains("\"http://a b\""), "{error}");
    }
}
