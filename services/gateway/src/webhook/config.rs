//! The address of a webhook, and the certificates that it is verified by.

use bytes::Bytes;
use http::Uri;
use setpoint_model::Key;
use setpoint_proto::{admissionregistration, apiextensions};

use super::Error;
use crate::outbound::ServiceAddress;

/// The port of a Service that a reference without one means.
const DEFAULT_PORT: u16 = 443;

/// The address of a webhook, and the certificates that it is verified by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// The address.
    pub(crate) address: Address,
    /// The certificates, in PEM, that its certificate is verified by; empty for the roots of the system.
    pub(crate) ca_bundle: Bytes,
}

/// The address of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A URL.
    Url(String),
    /// A port of a Service, and the path of its requests.
    Service { at: ServiceAddress, path: String },
}

impl Config {
    /// Returns the port of the Service; `None` for a URL.
    pub(super) fn service(&self) -> Option<&ServiceAddress> {
        match &self.address {
            Address::Url(_) => None,
            Address::Service { at, .. } => Some(at),
        }
    }

    /// Returns the URL of requests with this timeout, which upstream sends as a parameter.
    ///
    /// # Errors
    /// If it is not a URL.
    pub(super) fn url(&self, seconds: u64) -> Result<Uri, Error> {
        let base = match &self.address {
            Address::Url(url) => url.clone(),
            Address::Service { at, path } => {
                format!("https://{}/{}", at.host(), path.trim_start_matches('/'))
            }
        };
        let url = format!("{base}?timeout={seconds}s");
        let parsed = url.parse::<Uri>();
        parsed.map_err(|error| Error::Url(format!("parse {url:?}: {error}")))
    }
}

/// Implements the conversion from the configs of two groups, which have the same fields.
macro_rules! of_client_config {
    ($config:ty) => {
        impl From<&$config> for Config {
            fn from(config: &$config) -> Self {
                let address = match &config.service {
                    Some(service) => Address::Service {
                        at: ServiceAddress {
                            service: Key::new(&service.namespace, &service.name),
                            port: (service.port)
                                .and_then(|port| u16::try_from(port).ok())
                                .unwrap_or(DEFAULT_PORT),
                        },
                        path: service.path.clone().unwrap_or_default(),
                    },
                    None => Address::Url(config.url.clone().unwrap_or_default()),
                };
                Self {
                    address,
                    ca_bundle: config.ca_bundle.clone(),
                }
            }
        }
    };
}
of_client_config!(apiextensions::WebhookClientConfig);
of_client_config!(admissionregistration::WebhookClientConfig);

#[cfg(test)]
mod tests {
    use setpoint_proto::apiextensions::{ServiceReference, WebhookClientConfig};

    use super::*;

    #[test]
    fn a_service_is_called_by_its_name_in_the_cluster() {
        let mut config = WebhookClientConfig {
            service: Some(ServiceReference {
                namespace: "shop".into(),
                name: "webhook".into(),
                path: Some("/convert".into()),
                port: Some(9443),
            }),
            ..Default::default()
        };
        let url = |config: &WebhookClientConfig| Config::from(config).url(30).unwrap().to_string();
        let expected = "https://webhook.shop.svc:9443/convert?timeout=30s";
        assert_eq!(url(&config), expected);
        config.service.as_mut().unwrap().port = None;
        config.service.as_mut().unwrap().path = None;
        assert_eq!(url(&config), "https://webhook.shop.svc:443/?timeout=30s");
    }

    #[test]
    fn a_url_is_called_as_it_is() {
        let config = WebhookClientConfig {
            url: Some("https://localhost:8443/convert".into()),
            ..Default::default()
        };
        let url = Config::from(&config).url(5).unwrap().to_string();
        assert_eq!(url, "https://localhost:8443/convert?timeout=5s");
    }
}
