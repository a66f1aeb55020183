//! The setpoint command, pointed at the cluster under test.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cluster::binary;
use crate::{Cluster, Output};

impl Cluster {
    /// Runs the setpoint command against the gateway of this number; `arguments` are split at white space.
    pub fn setpoint_at(&self, gateway: usize, arguments: &str) -> Output {
        let output = Command::new(binary("setpoint"))
            .args(["--gateway", &self.gateway_url_at(gateway)])
            .args(arguments.split_whitespace())
            .stdin(Stdio::null())
            .output()
            .expect("it was built");
        Output {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// What the setpoint command answers as JSON.
    ///
    /// # Errors
    /// What it says when it fails.
    pub fn setpoint_json(&self, gateway: usize, arguments: &str) -> Result<Value, String> {
        let output = self.setpoint_at(gateway, &format!("{arguments} -o json"));
        match serde_json::from_str(&output.stdout) {
            Ok(answer) if output.success => Ok(answer),
            _ => Err(format!("{}{}", output.stdout, output.stderr)),
        }
    }
}
