//! The settings of the certificatesigningrequest-controller.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;
use setpoint_host::settings::first_broken;

/// Signing by the certificatesigningrequest-controller; the default duration is upstream's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Signing {
    /// File with the certificate of the CA that signs certificates; empty for one that is made once and kept in the
    /// Secret setpoint-system/cluster-signer.
    pub ca_certificate: PathBuf,
    /// File with the private key of that CA (PKCS #8).
    pub ca_key: PathBuf,
    /// Longest time for which a signed certificate is valid; at least 10m.
    #[serde(with = "DurationText")]
    pub duration: Duration,
}

impl Default for Signing {
    fn default() -> Self {
        Self {
            ca_certificate: PathBuf::new(),
            ca_key: PathBuf::new(),
            duration: Duration::from_secs(365 * 24 * 3600),
        }
    }
}

impl Signing {
    /// The shortest duration of a certificate, as upstream's.
    pub const SHORTEST: Duration = Duration::from_secs(600);

    /// Returns whether the CA is made and kept in a Secret.
    pub fn makes_ca(&self) -> bool {
        self.ca_certificate.as_os_str().is_empty()
    }
}

impl setpoint_host::Settings for Signing {
    fn validate(&self) -> Result<(), String> {
        let [certificate, key] =
            [&self.ca_certificate, &self.ca_key].map(|file| file.as_os_str().is_empty());
        first_broken(&[
            (
                certificate == key,
                "ca_certificate and ca_key must be given together",
            ),
            (
                self.duration >= Self::SHORTEST,
                "duration must be at least 10m",
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use setpoint_host::Settings as _;

    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused_with_the_reason() {
        let of = |certificate: &str, key: &str, seconds| Signing {
            ca_certificate: certificate.into(),
            ca_key: key.into(),
            duration: Duration::from_secs(seconds),
        };
        assert_eq!(Signing::default().validate(), Ok(()));
        assert_eq!(Signing::default().duration.as_secs(), 31_536_000);
        assert_eq!(of("ca.crt", "ca.key", 600).validate(), Ok(()));
        for (certificate, key) in [("ca.crt", ""), ("", "ca.key")] {
            let refused = of(certificate, key, 600).validate();
            let problem = "ca_certificate and ca_key must be given together";
            assert_eq!(refused, Err(problem.to_owned()));
        }
        let short = of("", "", 599).validate();
        assert_eq!(short, Err("duration must be at least 10m".to_owned()));
        assert!(of("", "", 600).makes_ca() && !of("ca.crt", "ca.key", 600).makes_ca());
    }
}
