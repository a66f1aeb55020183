//! The settings of a containerd of a test's own.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{HANDLER, OWN_PLUGINS, REGISTRIES};

/// The program; another one can be tested by this variable.
const PROGRAM: &str = "containerd";
const VARIABLE: &str = "SETPOINT_TEST_CONTAINERD";

/// Returns the program.
pub fn program() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| PROGRAM.into())
}

/// Returns the configuration of a network of this test's own.
pub fn network(folder: &Path, bridge: &str) -> String {
    let number = std::process::id();
    let (high, low) = (128 + number / 250 % 120, number % 250);
    let subnet = format!("10.{high}.{low}.0/24");
    let list = serde_json::json!({
        "cniVersion": "0.4.0",
        "name": bridge,
        "plugins": [
            {
                "type": "bridge",
                "bridge": bridge,
                "isGateway": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": folder.join("ipam"),
                    "ranges": [[{ "subnet": subnet }]],
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
        ],
    });
    list.to_string()
}

/// Starts a containerd whose files are in `folder`.
pub fn spawn(folder: &Path, sandbox_image: &str) -> Child {
    let config = folder.join("config.toml");
    let at = |name: &str| folder.join(name).display().to_string();
    let text = format!(
        r#"version = 2
root = "{root}"
state = "{state}"
[grpc]
address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
path = "{opt}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "docker.io/{sandbox_image}"
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{HANDLER}]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{registries}"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{cni}"
"#,
        plugins = at(OWN_PLUGINS),
        registries = at(REGISTRIES),
        root = at("root"),
        state = at("state"),
        socket = at("c.sock"),
        opt = at("opt"),
        cni = at("cni"),
    );
    fs::write(&config, text).unwrap();
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(at("log"))
        .unwrap();
    let mut containerd = Command::new(program());
    containerd
        .arg("--config")
        .arg(config)
        .args(["--log-level", "warn"]);
    containerd
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    containerd.spawn().unwrap()
}
