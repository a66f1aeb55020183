//! Configuration files that are wrong end the process at its start.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

/// Starts a gateway with a file for a setting.
fn started_with(setting: &str, text: &str) -> (Output, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file.yaml");
    fs::write(&file, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_gateway"))
        .args([format!("--{setting}").as_str(), file.to_str().unwrap()])
        .args(["--tls-plaintext", "--listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    (output, directory)
}

#[test]
fn a_file_that_is_wrong_ends_the_process_with_64_and_the_path_of_its_field() {
    const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: ";
    let authentication = format!(
        "{HEAD}AuthenticationConfiguration
jwt:
- issuer: {{url: 'https://issuer.example.com', audiences: [a]}}
  claimMappings: {{username: {{expression: 'claims.sub +'}}}}
"
    );
    let authorization =
        format!("{HEAD}AuthorizationConfiguration\nauthorizers: [{{type: RBAC}}]\n");
    let webhook = format!(
        "{HEAD}AuthorizationConfiguration
authorizers:
- type: Webhook
  name: a
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: /none/webhook.yaml}}
"
    );
    for (setting, text, expected) in [
        (
            "authentication-configuration-file",
            authentication.as_str(),
            "authentication.configuration_file: jwt[0].claimMappings.username.expression: Invalid value: \"claims.sub \
             +\": compilation failed: ERROR: <input>:1:13: ",
        ),
        (
            "authorization-configuration-file",
            &authorization,
            "authorization.configuration_file: authorizers[0].name: Required value",
        ),
        (
            "authorization-configuration-file",
            &webhook,
            "authorization.configuration_file: authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \
             \"/none/webhook.yaml\": error loading file: ",
        ),
        (
            "authentication-token-webhook-config-file",
            "kind: Config\n",
            "authentication.token_webhook_config_file: current-context: Required value",
        ),
    ] {
        let (output, _directory) = started_with(setting, text);
        assert_eq!(output.status.code(), Some(64), "{output:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(error.lines().count(), 1, "{error}");
        let start = format!("gateway: invalid settings: {expected}");
        assert!(error.starts_with(&start), "{error}");
    }
}
