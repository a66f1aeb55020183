//! How a command reaches the cluster: by an address that was given, or by what the state folder knows.

use anyhow::bail;
use setpoint_controller::Client;
use setpoint_controller::client::Settings;

use crate::folder::Folder;
use crate::shape::{Shape, address};

/// The name under which this command writes.
const WRITER: &str = "setpoint";

/// A state folder, and perhaps the address of a cluster that has none here.
#[derive(Clone, Debug)]
pub struct Reach {
    /// Where a local cluster keeps its state.
    pub folder: Folder,
    given: Option<String>,
}

impl Reach {
    /// By the address that was `given`, else by what `folder` knows.
    pub fn new(folder: Folder, given: Option<String>) -> Self {
        Self { folder, given }
    }

    /// The address that was given, if one was.
    pub fn given(&self) -> Option<&str> {
        self.given.as_deref()
    }

    /// The same, at `address`.
    #[must_use]
    pub fn at(&self, address: String) -> Self {
        Self::new(self.folder.clone(), Some(address))
    }

    /// Where the gateways are, comma separated.
    ///
    /// # Errors
    /// No address was given and no cluster runs here.
    pub fn addresses(&self) -> anyhow::Result<String> {
        if let Some(given) = &self.given {
            return Ok(given.clone());
        }
        match Shape::load(&self.folder)? {
            Some(shape) => Ok(shape.addresses()),
            None => bail!(
                "no cluster runs in {}; ./deploy/up starts one, --gateway {} reaches another",
                self.folder.shown(self.folder.state()),
                address(6443)
            ),
        }
    }

    /// A client of the gateways.
    ///
    /// # Errors
    /// As [`Self::addresses`], or the address is none.
    pub fn gateway(&self) -> anyhow::Result<Client> {
        let settings = Settings {
            address: self.addresses()?,
            ..Settings::default()
        };
        Ok(Client::connect(&settings, WRITER)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_given_goes_before_the_folders() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::find(root.path(), None);
        let _held = folder.lock().unwrap();
        let reach = Reach::new(folder.clone(), None);
        let error = reach.addresses().unwrap_err().to_string();
        assert!(error.starts_with("no cluster runs in .setpoint"), "{error}");
        let shape = Shape {
            gateways: vec![1, 2],
            ..Shape::default()
        };
        shape.save(&folder).unwrap();
        assert_eq!(
            reach.addresses().unwrap(),
            "http://127.0.0.1:1,http://127.0.0.1:2"
        );
        let reach = Reach::new(folder, Some("http://[::1]:3".to_owned()));
        assert_eq!(reach.addresses().unwrap(), "http://[::1]:3");
    }
}
