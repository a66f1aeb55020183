//! The settings of `kube-public/cluster-info`.

use http::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The address of the cluster that is published in the ConfigMap kube-public/cluster-info.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct ClusterInfo {
    /// URL at which clients reach the gateways. With it and with TLS, the ConfigMap kube-public/cluster-info has this
    /// URL and the CAs of `tls.ca_file`, and everybody may read it, for machines that join by a bootstrap token. A
    /// ConfigMap that an administrator has made stays as it is. Empty for none.
    #[serde(default)]
    pub(super) server: String,
}

impl ClusterInfo {
    pub(super) fn validate(&self) -> Result<(), String> {
        let is_url = |uri: Uri| uri.scheme_str() == Some("https") && uri.host().is_some();
        match self.server.is_empty() || self.server.parse().is_ok_and(is_url) {
            true => Ok(()),
            false => Err("cluster_info.server must be a URL of the scheme https".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_a_url_of_https() {
        for (server, valid) in [
            ("", true),
            ("https://10.0.0.1:6443", true),
            ("https://api.example.com", true),
            ("http://10.0.0.1:6443", false),
            ("10.0.0.1:6443", false),
            ("https://a\nb", false),
        ] {
            let server = server.to_owned();
            let settings = ClusterInfo { server };
            assert_eq!(settings.validate().is_ok(), valid, "{settings:?}");
        }
    }
}
