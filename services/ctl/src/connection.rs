//! The connection of a command to its cluster: the address given by `--gateway`, or that of the file given by
//! `--kubeconfig`, or else the one recorded in the state directory.

use std::path::{Display, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;
use setpoint_controller::Client;
use setpoint_controller::client::Settings;
use setpoint_model::Key;
use setpoint_proto::{Reason, Resource};
use setpoint_tls::Credentials;

use crate::advice::advised;
use crate::launcher::{ClusterSpec, Component, Kubeconfig, Pki, StateDir, address, frozen};

/// The field manager of writes by this command.
pub const WRITER: &str = "setpoint";

/// The state directory, and what `--gateway` and `--kubeconfig` give, if anything.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The state directory of the local cluster.
    pub state_dir: StateDir,
    given: Option<String>,
    kubeconfig: Option<PathBuf>,
}

impl Connection {
    /// Creates a connection to the address `given`, or else to the local cluster of `state_dir`.
    pub fn new(state_dir: StateDir, given: Option<String>) -> Self {
        Self {
            state_dir,
            given,
            kubeconfig: None,
        }
    }

    /// Returns a copy with the address and the credentials of this kubeconfig, if there is one. An address that was
    /// given takes precedence.
    #[must_use]
    pub fn with_kubeconfig(self, kubeconfig: Option<PathBuf>) -> Self {
        Self { kubeconfig, ..self }
    }

    /// Returns a copy with this kubeconfig, unless one was given.
    #[must_use]
    pub fn or_kubeconfig(self, path: PathBuf) -> Self {
        let kubeconfig = self.kubeconfig.clone().unwrap_or(path);
        self.with_kubeconfig(Some(kubeconfig))
    }

    /// Returns the address given by the user, if any.
    pub fn given(&self) -> Option<&str> {
        self.given.as_deref()
    }

    /// Returns a copy that connects to `address`.
    #[must_use]
    pub fn at(&self, address: String) -> Self {
        Self {
            given: Some(address),
            ..self.clone()
        }
    }

    /// Returns whether the user has given a cluster, which may be on another machine.
    pub fn is_given(&self) -> bool {
        self.given.is_some() || self.kubeconfig.is_some()
    }

    /// Returns the addresses of the gateways, comma-separated.
    ///
    /// # Errors
    /// No address was given, and the state directory records no cluster and no part of one.
    pub fn addresses(&self) -> anyhow::Result<String> {
        if let Some(given) = &self.given {
            return Ok(given.clone());
        }
        if let Some(path) = &self.kubeconfig {
            return Ok(Kubeconfig::load(path)?.server().to_owned());
        }
        let components = Component::all(&self.state_dir)?;
        if let Some(component) = components.first() {
            return Ok(component.addresses());
        }
        match ClusterSpec::load(&self.state_dir)? {
            Some(_) if frozen::is_paused(&self.state_dir) => Err(advised(
                format!("the cluster in {} is paused", self.shown_state()),
                "setpoint resume",
            )),
            Some(spec) => Ok(spec.addresses()),
            None => Err(advised(
                format!("no cluster runs in {}", self.shown_state()),
                format!(
                    "./deploy/up to start one, or --kubeconfig FILE or --gateway {} for another",
                    address(6443)
                ),
            )),
        }
    }

    fn shown_state(&self) -> Display<'_> {
        self.state_dir.shown(self.state_dir.state())
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

    /// Returns the credentials of the kubeconfig, or the administrator's, if the state directory has them. A plaintext
    /// cluster needs none.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn credentials(&self) -> anyhow::Result<Option<Credentials>> {
        if let Some(path) = &self.kubeconfig {
            return Kubeconfig::load(path)?.credentials().map(Some);
        }
        let files = self.state_dir.pki().administrator();
        let exist = files.certificate_file.exists();
        exist.then(|| Pki::credentials(&files)).transpose()
    }
}

/// Creates an object, or sets these fields if it is there.
///
/// # Errors
/// If the gateway refuses it.
pub async fn ensure<T: Resource + DeserializeOwned>(
    gateway: &Client,
    wanted: Value,
) -> anyhow::Result<()> {
    let metadata = &wanted["metadata"];
    let text = |name: &str| metadata[name].as_str().unwrap_or_default();
    let key = Key::new(text("namespace"), text("name"));
    let object: T = serde_json::from_value(wanted.clone())?;
    match gateway.create(&object).await {
        Err(error) if error.reason == Reason::AlreadyExists => {
            gateway.patch::<T>(&key, "", wanted).await?;
        }
        created => drop(created?),
    }
    Ok(())
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
