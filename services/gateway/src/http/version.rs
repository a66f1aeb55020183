//! `/version`: which Kubernetes this server speaks like, and which Setpoint it is.

use serde_json::{Value, json};

/// The minor version of Kubernetes whose clients we answer as they expect.
const MINOR: &str = "33";

/// kubectl compares the numbers with its own, so they are Kubernetes'; ours stand behind the plus.
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
