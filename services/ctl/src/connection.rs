//! The connection of a command to its cluster: the address given by `--gateway`, or else the one recorded in the state
//! directory.

use anyhow::bail;
use setpoint_controller::Client;
use setpoint_controller::client::Settings;
use setpoint_tls::Credentials;

use crate::launcher::{ClusterSpec, Pki, StateDir, address};

/// The field manager of writes by this command.
const WRITER: &str = "setpoint";

/// The state directory, and the address given by `--gateway`, if any.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The state directory of the local cluster.
    pub state_dir: StateDir,
    given: Option<String>,
}

impl Connection {
    /// Creates a connection to the address `given`, or else to the local cluster of `state_dir`.
    pub fn new(state_dir: StateDir, given: Option<String>) -> Self {
        Self { state_dir, given }
    }

    /// Returns the address given by the user, if any.
    pub fn given(&self) -> Option<&str> {
        self.given.as_deref()
    }

    /// Returns a copy that connects to `address`.
    #[must_use]
    pub fn at(&self, address: String) -> Self {
        Self::new(self.state_dir.clone(), Some(address))
    }

    /// Returns the addresses of the gateways, comma-separated.
    ///
    /// # Errors
    /// No address was given and the state directory records no cluster.
    pub fn addresses(&self) -> anyhow::Result<String> {
        if let Some(given) = &self.given {
            return Ok(given.clone());
        }
        match ClusterSpec::load(&self.state_dir)? {
            Some(spec) => Ok(spec.addresses()),
            None => bail!(
                "no cluster runs in {}; ./deploy/up starts one, --gateway {} reaches another",
                self.state_dir.shown(self.state_dir.state()),
                address(6443)
            ),
        }
    }

    /// Creates a client of the gateways; it connects with the first request.
    ///
    /// # Errors
    /// As [`Self::addresses`], or the address is invalid.
    pub fn gateway(&self) -> anyhow::Result<Client> {
        let settings = Settings {
            address: self.addresses()?,
            ..Settings::default()
        };
        let credentials = self.credentials()?;
        Ok(Client::connect_with(&settings, credentials, WRITER)?)
    }

    /// Returns the administrator's credentials, if the state directory has them. A plaintext cluster needs none.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn credentials(&self) -> anyhow::Result<Option<Credentials>> {
        let files = self.state_dir.pki().administrator();
        let exist = files.certificate_file.exists();
        exist.then(|| Pki::credentials(&files)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_address_takes_precedence_over_the_recorded_one() {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        let _held = state_dir.lock().unwrap();
        let connection = Connection::new(state_dir.clone(), None);
        let error = connection.addresses().unwrap_err().to_string();
        assert!(error.starts_with("no cluster runs in .setpoint"), "{error}");
        let spec = ClusterSpec {
            gateways: vec![1, 2],
            ..ClusterSpec::default()
        };
        spec.save(&state_dir).unwrap();
        assert_eq!(
            connection.addresses().unwrap(),
            "https://127.0.0.1:1,https://127.0.0.1:2"
        );
        let connection = Connection::new(state_dir, Some("http://[::1]:3".to_owned()));
        assert_eq!(connection.addresses().unwrap(), "http://[::1]:3");
    }
}
