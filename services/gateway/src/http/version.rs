//! `/version`: the Kubernetes version whose API is served, and the version of Setpoint.

use serde_json::{Value, json};
use setpoint_model::version::{MINOR, git_version};

/// Returns the version document.
pub(super) fn document() -> Value {
    json!({
        "major": "1",
        "minor": MINOR,
        "gitVersion": git_version(env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
