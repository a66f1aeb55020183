//! etcd is killed and the gateway is restarted: no acknowledged write is lost, and all services recover.

use setpoint_tests::{Cluster, Size, eventually};

use crate::web::{apply, until_ready};

#[test]
fn a_gateway_without_etcd_is_not_ready_and_reports_the_reason() {
    let mut cluster = Cluster::without_etcd();
    cluster.start_gateway();
    let kubectl = cluster.kubectl();
    eventually("the gateway serves, but is not ready", || {
        let output = kubectl.run("get --raw /livez");
        output.success.then_some(()).ok_or(output.stderr)
    });
    assert!(!kubectl.run("get --raw /readyz").success);
    eventually("the log has the reason", || {
        let log = cluster.log("gateway-0");
        log.contains("etcd").then_some(()).ok_or(log)
    });
    cluster.start_etcd();
    cluster.wait_until_ready();
    assert!(
        kubectl
            .ok("get namespaces -o name")
            .contains("namespace/default")
    );
}

/// Checks S4 in its simple form: acknowledged writes survive kill -9 of etcd under load.
#[test]
fn acknowledged_writes_survive_a_killed_etcd_and_the_cluster_recovers() {
    let mut cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 2,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    let writer = {
        let kubectl = kubectl.clone();
        std::thread::spawn(move || {
            let names = (0..40).map(|n| format!("kept-{n}"));
            names
                .filter(|name| {
                    kubectl
                        .run(&format!("create configmap {name} --from-literal=a=b"))
                        .success
                })
                .collect::<Vec<_>>()
        })
    };
    for n in 0..2 {
        cluster.process("etcd-0").restart();
        // The next kill must also hit writes in progress.
        eventually("writes succeed again", || {
            let output = kubectl.run(&format!("label namespace default kills={n} --overwrite"));
            output.success.then_some(()).ok_or(output.stderr)
        });
    }
    let acknowledged = writer.join().expect("the writer does not panic");
    assert!(!acknowledged.is_empty(), "no write was acknowledged");
    cluster.wait_until_ready();
    let kept = eventually("reads succeed again", || {
        let output = kubectl.run("get configmaps -o name");
        output.success.then_some(output.stdout).ok_or(output.stderr)
    });
    for name in &acknowledged {
        assert!(
            kept.lines().any(|line| line == format!("configmap/{name}")),
            "{name} is lost"
        );
    }
    kubectl.ok("scale deployment/web-frontend -n production --replicas=6");
    until_ready(&kubectl, 6);
}

/// Checks I3: watches resume at their last revision; no client lists again.
#[test]
fn watches_resume_at_a_restarted_gateway_without_relists() {
    let mut cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 2,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    cluster.process("gateway-0").restart();
    cluster.wait_until_ready();
    kubectl.ok("scale deployment/web-frontend -n production --replicas=5");
    until_ready(&kubectl, 5);
    for service in [
        "deployment-controller-0",
        "replicaset-controller-0",
        "scheduler-0",
    ] {
        let log = cluster.log(service);
        assert!(!log.contains("relist"), "{service} listed again: {log}");
    }
}

#[test]
fn malformed_and_oversize_requests_are_rejected_with_a_reason() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    let url = |path: &str| format!("{}{path}", cluster.gateway_url());
    let post = |body: &[u8]| {
        let file = cluster.directory().join("body");
        std::fs::write(&file, body).expect("the file is writable");
        let output = std::process::Command::new("curl")
            .args([
                "-s",
                // Over HTTP/2 curl does not show a response that comes before it has sent the body.
                "--http1.1",
                "--cacert",
                "pki/admin/ca.crt",
                "--cert",
                "pki/admin/tls.crt",
                "--key",
                "pki/admin/tls.key",
                // A large body is sent only after the server's 100-continue.
                "--expect100-timeout",
                "60",
                "-X",
                "POST",
                "-H",
                "Content-Type: application/json",
                "--data-binary",
            ])
            .arg(format!("@{}", file.display()))
            .current_dir(cluster.directory())
            .arg(url("/api/v1/namespaces/default/configmaps"))
            .output()
            .expect("curl is installed");
        // Responses to curl are indented.
        String::from_utf8_lossy(&output.stdout).replace("\": ", "\":")
    };
    let answer = post(b"{\"metadata\":");
    assert!(
        answer.contains("\"reason\":\"BadRequest\"") && answer.contains("\"code\":400"),
        "{answer}"
    );
    let answer = post(
        format!(
            r#"{{"metadata":{{"name":"big"}},"data":{{"a":"{}"}}}}"#,
            "x".repeat(4 << 20)
        )
        .as_bytes(),
    );
    assert!(answer.contains("\"code\":413"), "{answer}");
    let answer = post(
        format!(
            r#"{{"metadata":{{"name":"big"}},"data":{{"a":"{}"}}}}"#,
            "x".repeat(2 << 20)
        )
        .as_bytes(),
    );
    assert!(
        answer.contains("\"code\":422") || answer.contains("\"code\":413"),
        "{answer}"
    );
    let stored = kubectl.ok("get configmap big --ignore-not-found -o name");
    assert!(stored.is_empty(), "{stored}");
}
