//! `/version`: the Kubernetes version whose API is served, and the version of Setpoint.

use serde_json::json;
use setpoint_model::version::{MINOR, git_version};

use super::ordered;

/// The oldest version whose clients and nodes are served: the one before, as in a kube-apiserver with its defaults.
const MIN_COMPATIBILITY_MINOR: &str = "35";

/// Returns the version document.
pub(super) fn document() -> Vec<u8> {
    let document = json!({
        "major": "1",
        "minor": MINOR,
        "emulationMajor": "1",
        "emulationMinor": MINOR,
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": MIN_COMPATIBILITY_MINOR,
        "gitVersion": git_version(env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    });
    ordered::json(&document, &ordered::VERSION_INFO)
}
