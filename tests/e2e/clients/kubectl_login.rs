//! kubectl logs in by an `exec` credential plug-in, with tokens of OpenID Connect issuers.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use setpoint_testkit::OidcIssuer;
use setpoint_tests::{Cluster, Kubectl, eventually};
use tempfile::TempDir;

/// Claims with a prefix become the user.
const BY_CLAIM: &str = "  claimMappings:
    username: {claim: sub, prefix: 'corp:'}
    groups: {claim: groups, prefix: 'corp:'}";
/// Expressions map claims.
const BY_EXPRESSION: &str = "  claimMappings:
    username: {expression: \"claims.sub + '@partner'\"}
    groups: {expression: \"claims.roles.split(',')\"}
    extra: [{key: example.com/team, valueExpression: claims.team}]";

/// A user whose kubeconfig names a program that prints a token.
struct Login {
    directory: TempDir,
    kubectl: Kubectl,
}

impl Login {
    fn new(cluster: &Cluster) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let plug_in = directory.path().join("login");
        let token = directory.path().join("token");
        let script = format!(
            "#!/bin/sh
printf '{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{{\"token\":\"%s\"}}}}' \
             \"$(cat {})\"
",
            token.display()
        );
        fs::write(&plug_in, script).expect("it is writable");
        fs::set_permissions(&plug_in, fs::Permissions::from_mode(0o700)).expect("it is ours");
        let mut config = cluster.kubectl().json("config view --raw -o json");
        let user = json!({ "exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": plug_in, "interactiveMode": "Never",
        } });
        config["users"][0]["user"] = user;
        let file = directory.path().join("kubeconfig");
        fs::write(file, config.to_string()).expect("it is writable");
        let kubectl = Kubectl::new(directory.path().to_owned());
        Self { directory, kubectl }
    }

    fn set_token(&self, token: &str) {
        fs::write(self.directory.path().join("token"), token).expect("it is writable");
    }

    /// Returns the user of a token, once it is known.
    fn whoami(&self, token: &str) -> Value {
        self.set_token(token);
        eventually("the token is known", || {
            let output = self.kubectl.run("auth whoami -o json");
            let review = serde_json::from_str::<Value>(&output.stdout);
            let user = review.map(|review| review["status"]["userInfo"].clone());
            user.map_err(|_| output.stderr)
        })
    }
}

fn configuration(entries: &[String]) -> String {
    let entries = entries.concat();
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n{entries}"
    )
}

/// A token of a new issuer and one of a new key are known without a restart; a file that is wrong changes nothing, and
/// is told.
#[test]
fn kubectl_logs_in_by_tokens_of_issuers_that_change() {
    let (corp, partner) = (OidcIssuer::start(), OidcIssuer::start());
    let mut cluster = Cluster::without_etcd();
    let file = cluster.directory().join("authentication.yaml");
    let one = configuration(&[corp.entry(BY_CLAIM)]);
    fs::write(&file, one).expect("it is writable");
    let flag = file.display().to_string();
    cluster.set_gateway_flags(&["--authentication-configuration-file", &flag]);
    cluster.start_etcd();
    cluster.start_gateway();
    cluster.wait_until_ready();
    let (kubectl, login) = (cluster.kubectl(), Login::new(&cluster));
    let jane = json!({"sub": "jane", "groups": ["dev"]});
    let user = login.whoami(&corp.token(&jane));
    assert_eq!(user["username"], "corp:jane");
    assert_eq!(user["groups"], json!(["corp:dev", "system:authenticated"]));

    let refused = login.kubectl.fails("get configmaps");
    let expected = "User \"corp:jane\" cannot list resource \"configmaps\"";
    assert!(refused.contains(expected), "{refused}");
    kubectl.ok("create role reads --verb=list --resource=configmaps");
    kubectl.ok("create rolebinding reads --role=reads --group=corp:dev");
    eventually("the role is in effect", || {
        let output = login.kubectl.run("get configmaps");
        output.success.then_some(()).ok_or(output.stderr)
    });

    corp.rotate(1);
    let user = login.whoami(&corp.token(&jane));
    assert_eq!(user["username"], "corp:jane");

    let both = configuration(&[corp.entry(BY_CLAIM), partner.entry(BY_EXPRESSION)]);
    fs::write(&file, &both).expect("it is writable");
    let joe = json!({"sub": "joe", "roles": "qa,ops", "team": "blue"});
    let user = login.whoami(&partner.token(&joe));
    let expected = json!({
        "username": "joe@partner",
        "groups": ["qa", "ops", "system:authenticated"],
        "extra": {"example.com/team": ["blue"]},
    });
    assert_eq!(user, expected);
    let table = login.kubectl.ok("auth whoami");
    assert!(table.contains("Extra: example.com/team"), "{table}");

    fs::write(
        &file,
        both.replace("audiences: [setpoint]", "audiences: []"),
    )
    .expect("it is writable");
    let message = eventually("an Event tells of the file", || {
        let selector = "--field-selector=reason=AuthenticationConfigurationInvalid";
        let events = kubectl.json(&format!("get events -n default {selector}"));
        let message = events["items"][0]["message"].as_str().map(str::to_owned);
        message.ok_or_else(|| events.to_string())
    });
    assert!(
        message.contains("jwt[0].issuer.audiences: Required value"),
        "{message}"
    );
    let metrics = kubectl.ok("get --raw /metrics");
    let counted = metrics.lines().find(|line| {
        line.starts_with("apiserver_authentication_config_controller_automatic_reloads_total{")
            && line.contains("status=\"failure\"")
    });
    assert!(
        counted.is_some_and(|line| line.ends_with(" 1")),
        "{counted:?}"
    );
    let user = login.whoami(&partner.token(&joe));
    assert_eq!(user["username"], "joe@partner");
}
