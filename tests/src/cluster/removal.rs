//! Takes a permission from a service before it starts, if the environment asks for it.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::{Cluster, REFUSED};
use crate::permission::WITHOUT;
use crate::{Kubectl, Permission};

const OWNERS: &str = "OwnerReferencesPermissionEnforcement";

/// The logs of the gateways of clusters without a permission.
static LOGS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Returns the flags of gateways with which the permission is asked for at all: those on finalizers are by a plugin
/// that is off by default.
pub(super) fn gateway_flags() -> Vec<String> {
    let permission = std::env::var(WITHOUT).unwrap_or_default();
    match permission.contains("/finalizers") {
        true => ["--enable-admission-plugins", OWNERS]
            .map(str::to_owned)
            .into(),
        false => Vec::new(),
    }
}

impl Cluster {
    /// Takes the permission that [`WITHOUT`] names from its role. All gateways must be ready.
    pub(super) fn remove_permission(&self) {
        let Ok(permission) = std::env::var(WITHOUT) else {
            return;
        };
        let permission = permission.parse();
        let permission: Permission = permission.expect("the variable has a permission");
        let gateways = 0..self.spec.gateways.len();
        let logs = gateways.map(|n| self.state.log(&format!("gateway-{n}")));
        LOGS.lock().extend(logs);
        remove(&self.kubectl(), &permission);
    }
}

fn remove(kubectl: &Kubectl, permission: &Permission) {
    let mut role = kubectl.json(&format!("get {}", permission.object()));
    permission.remove_from(&mut role);
    let replaced = kubectl.with("replace", &role.to_string());
    assert!(replaced.success, "{}", replaced.stderr);
}

/// Fails the test once a gateway has refused a request of a service without a permission: what the test waits for will
/// hardly happen any more. A teardown would fail, too, but after the wait.
pub(crate) fn check_refused() {
    let refused = LOGS.lock().iter().find_map(|log| first_refused(log));
    if let Some(line) = refused {
        LOGS.lock().clear();
        panic!("{line}");
    }
}

fn first_refused(log: &Path) -> Option<String> {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let mut lines = log.lines();
    lines.find(|line| line.contains(REFUSED)).map(str::to_owned)
}
