//! `/version`: the Kubernetes version whose API is served, and the version of Setpoint.

use serde_json::{Value, json};

/// The minor version of Kubernetes whose API is served.
const MINOR: &str = "36";

/// Returns the version document. kubectl compares the numbers with its own, so the version of Setpoint is build metadata.
pub(super) fn document() -> Value {
    json!({
        "major": "1",
        "minor": MINOR,
        "gitVersion": format!("v1.{MINOR}.0+setpoint-{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
