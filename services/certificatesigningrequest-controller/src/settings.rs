//! The settings of the certificatesigningrequest-controller.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_host::duration;

/// The settings of the signer; the default duration is upstream's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Signing {
    /// The file with the certificate of the CA; empty for a CA that is made once and kept in a Secret.
    pub ca_certificate: PathBuf,
    /// The file with its private key.
    pub ca_key: PathBuf,
    /// The longest time for which a certificate is valid.
    #[serde(with = "duration")]
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

    /// Checks the settings.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn validate(&self) -> Result<(), String> {
        if self.ca_certificate.as_os_str().is_empty() != self.ca_key.as_os_str().is_empty() {
            return Err("ca_certificate and ca_key must be given together".to_owned());
        }
        match self.duration >= Self::SHORTEST {
            true => Ok(()),
            false => Err("duration must be at least 10m".to_owned()),
        }
    }
}

/// The descriptions of [`Signing`] for `--help`, as the table of this name.
#[macro_export]
macro_rules! describe_signing {
    ($table:literal) => {
        [
            (
                concat!($table, ".ca_certificate"),
                "File with the certificate of the CA that signs certificates; empty for one that is made once and kept in the Secret setpoint-system/cluster-signer",
            ),
            (
                concat!($table, ".ca_key"),
                "File with the private key of that CA (PKCS #8)",
            ),
            (
                concat!($table, ".duration"),
                "Longest time for which a signed certificate is valid; at least 10m",
            ),
        ]
    };
}

#[cfg(test)]
mod tests {
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
