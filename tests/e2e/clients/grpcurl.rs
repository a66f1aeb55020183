//! grpcurl, which knows the API by reflection only.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use setpoint_tests::Cluster;

use super::client;

/// Calls a method of the gateway with a message in JSON, or lists and describes if `arguments` say so.
fn call(grpcurl: &Path, cluster: &Cluster, message: Option<&Value>, arguments: &[&str]) -> Output {
    let gateway = cluster.gateway_url_at(0);
    let identity = cluster.directory().join("pki/admin");
    let mut command = Command::new(grpcurl);
    command.args(["-max-time", "30"]);
    for (flag, file) in [
        ("-cacert", "ca.crt"),
        ("-cert", "tls.crt"),
        ("-key", "tls.key"),
    ] {
        command.arg(flag).arg(identity.join(file));
    }
    command.args(
        message
            .iter()
            .flat_map(|json| ["-d".to_owned(), json.to_string()]),
    );
    let output = command.arg(gateway.place()).args(arguments).output();
    output.expect("the program is installed")
}

fn text(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn grpcurl_lists_describes_and_calls_the_service_of_objects() {
    let Some(grpcurl) = client("grpcurl") else {
        return;
    };
    let cluster = Cluster::bare();
    let services = text(&call(&grpcurl, &cluster, None, &["list"]));
    for service in ["setpoint.v1.Objects", "setpoint.v1.Explain"] {
        assert!(services.lines().any(|line| line == service), "{services}");
    }
    let kind = text(&call(
        &grpcurl,
        &cluster,
        None,
        &["describe", "k8s.core.v1.ConfigMap"],
    ));
    assert!(kind.contains("map<string, string> data = 2"), "{kind}");

    let name = json!({"resource": "configmaps", "namespace": "default", "name": "colours"});
    let object = json!({
        "@type": "type.googleapis.com/k8s.core.v1.ConfigMap",
        "metadata": {"name": "colours"},
        "data": {"sky": "blue"},
    });
    let create = json!({"resource": "configmaps", "namespace": "default", "object": object});
    text(&call(
        &grpcurl,
        &cluster,
        Some(&create),
        &["setpoint.v1.Objects/Create"],
    ));
    let sky = cluster
        .kubectl()
        .ok("get configmap colours -o jsonpath={.data.sky}");
    assert_eq!(sky, "blue");

    let got = text(&call(
        &grpcurl,
        &cluster,
        Some(&name),
        &["setpoint.v1.Objects/Get"],
    ));
    let got: Value = serde_json::from_str(&got).expect("grpcurl writes JSON");
    assert_eq!(got["object"]["@type"], object["@type"]);
    assert_eq!(got["object"]["data"], object["data"]);
    assert_eq!(
        got["revision"],
        got["object"]["metadata"]["resourceVersion"]
    );

    let missing = json!({"resource": "configmaps", "namespace": "default", "name": "sounds"});
    let missing = call(
        &grpcurl,
        &cluster,
        Some(&missing),
        &["setpoint.v1.Objects/Get"],
    );
    let stderr = String::from_utf8_lossy(&missing.stderr);
    assert!(
        !missing.status.success() && stderr.contains("Code: NotFound"),
        "{stderr}"
    );
    assert!(
        stderr.contains("configmaps \"sounds\" not found"),
        "{stderr}"
    );
}
