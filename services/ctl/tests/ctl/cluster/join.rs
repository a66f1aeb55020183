//! Agents join a cluster by tokens.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::cluster::agent_machine::{AgentMachine, create, create_pod, kubectl, kubectl_create};
use crate::cluster::harness::{Cluster, eventually, stdout_of};

fn token_of(command: &str) -> &str {
    let mut words = command.split(' ').skip_while(|word| *word != "--token");
    words.nth(1).unwrap()
}

fn tokens(cluster: &Cluster) -> Vec<Value> {
    let text = stdout_of(&cluster.run(&["token", "list", "-o", "json"]));
    serde_json::from_str(&text).unwrap()
}

fn exists(path: &Path) -> bool {
    path.try_exists().unwrap()
}

#[test]
fn an_agent_joins_by_a_token_for_one_use() {
    let cluster = Cluster::new();
    cluster.up(&[]);
    let command = create(&cluster, "worker-1", &["--description", "rack 2"]);
    let machine = AgentMachine::new(&cluster, "machine");
    let text = stdout_of(&machine.follow(&command));
    assert!(text.ends_with("The node worker-1 is Ready\n"), "{text}");
    let nodes = stdout_of(&kubectl(&cluster, "get nodes --no-headers"));
    let row = nodes.lines().find(|line| line.starts_with("worker-1 "));
    assert!(row.is_some_and(|row| row.contains(" Ready ")), "{nodes}");

    create_pod(&cluster);
    eventually("the Pod runs", || {
        let phase = kubectl(&cluster, "get pod on-worker -o jsonpath={.status.phase}");
        (phase.stdout == b"Running").then_some(())
    });
    eventually("the gateway reaches the agent", || {
        let run = kubectl(&cluster, "exec on-worker -- echo here");
        (run.stdout == b"here\n").then_some(())
    });

    // It is removed soon.
    let is_used = |token: &Value| token["used"] == true;
    assert!(tokens(&cluster).iter().all(is_used));
    assert!(!exists(&machine.state.join("join/worker-1/token")));
    let other = AgentMachine::new(&cluster, "other");
    let why = other.refused(&command);
    assert!(why.contains("was used"), "{why}");
    assert!(!exists(&other.state.join("join/worker-1")));
    let second = cluster.run(&["token", "create", "--for", "agent", "--node", "worker-1"]);
    let why = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        why.contains("the node worker-1 is there already, and is Ready"),
        "{why}"
    );
    let why = machine.refused(&command);
    assert!(
        why.contains("an agent of the node worker-1 runs already in machine"),
        "{why}"
    );

    let status = stdout_of(&machine.run(&["status"]));
    assert_eq!(status.lines().count(), 2, "{status}");
    assert!(status.contains("node-agent-of-worker-1"), "{status}");
    let text = stdout_of(&machine.run(&["down"]));
    assert!(
        text.contains("Setpoint is down: 1 processes stopped"),
        "{text}"
    );
    let text = stdout_of(&machine.run(&["up"]));
    assert!(
        text.contains("node-agent-of-worker-1        ready after"),
        "{text}"
    );
    stdout_of(&machine.run(&["down"]));
    let text = stdout_of(&machine.follow(&command));
    assert!(
        text.starts_with("worker-1 has joined by this token before"),
        "{text}"
    );
    assert_eq!(cluster.pids().len(), 14);
    eventually("the token is gone", || {
        tokens(&cluster).is_empty().then_some(())
    });
}

/// Each reason is told in its own words, and leaves nothing behind.
#[test]
fn what_a_token_was_not_made_for_does_not_join() {
    let cluster = Cluster::new();
    cluster.up(&[]);
    let machine = AgentMachine::new(&cluster, "machine");
    for kind in ["gateway", "controller", "etcd"] {
        let output = cluster.run(&["token", "create", "--for", kind]);
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected = "setpoint: the cluster was started for this machine alone";
        assert!(why.starts_with(expected), "{why}");
    }
    assert_eq!(tokens(&cluster).len(), 0);
    let command = create(&cluster, "worker-1", &[]);
    let (_, hash) = command.split_once("--ca-cert-hash sha256:").unwrap();
    let why = machine.refused(&command.replace(hash, &"0".repeat(64)));
    assert!(
        why.contains(&format!(
            "the CA of this cluster has the hash sha256:{hash}, and not"
        )),
        "{why}"
    );
    let of_agent = command.replace("join agent", "join gateway");
    let of_agent = of_agent.replace(
        "--node worker-1",
        &format!("--certificate-key {}", "0".repeat(64)),
    );
    let why = machine.refused(&of_agent);
    assert!(
        why.contains(
            "was made for something else than a gateway: `setpoint token create --for gateway`"
        ),
        "{why}"
    );
    assert!(!exists(&machine.state.join("control-plane")));
    let token = token_of(&command);
    let why =
        machine.refused(&command.replace(token, &format!("{}.{}", &token[..6], "0".repeat(16))));
    assert!(
        why.contains("does not know the secret of the token"),
        "{why}"
    );

    // One for nothing in particular, as of kubeadm.
    kubectl_create(
        &cluster,
        &json!({
            "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
            "metadata": { "name": "bootstrap-token-kubead", "namespace": "kube-system" },
            "stringData": {
                "token-id": "kubead", "token-secret": "0123456789abcdef",
                "usage-bootstrap-signing": "true", "usage-bootstrap-authentication": "true",
            },
        }),
    );
    let why = machine.refused(&command.replace(token, "kubead.0123456789abcdef"));
    assert!(
        why.contains("the token kubead was made for something else than an agent"),
        "{why}"
    );

    let list = stdout_of(&cluster.run(&["token", "list"]));
    assert!(
        list.starts_with("TOKEN    FOR     NODE       EXPIRES"),
        "{list}"
    );
    assert!(
        list.contains(&format!("{}   agent   worker-1   in ", &token[..6])),
        "{list}"
    );
    assert!(list.contains("kubead   -       -          never"), "{list}");
    assert!(
        !list.contains(&token[7..]) && !list.contains("0123456789abcdef"),
        "{list}"
    );
    let text = stdout_of(&cluster.run(&["token", "delete", token, "kubead"]));
    assert_eq!(text.matches("\" deleted\n").count(), 2, "{text}");
    let again = cluster.run(&["token", "delete", "kubead"]);
    let why = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(
        why.starts_with("setpoint: there is no token kubead"),
        "{why}"
    );
    let why = machine.refused(&command);
    assert!(why.contains("has expired, was used or deleted"), "{why}");

    let expired = create(&cluster, "worker-3", &["--ttl", "1s"]);
    eventually("it is removed", || {
        tokens(&cluster).is_empty().then_some(())
    });
    let why = machine.refused(&expired);
    assert!(why.contains("has expired, was used or deleted"), "{why}");
    assert!(!exists(&machine.state.join("join/worker-1")));
    let status = stdout_of(&cluster.run(&["status"]));
    assert_eq!(status.matches(" ready\n").count(), 14, "{status}");
}

#[test]
fn a_token_brings_in_the_node_that_it_names_only() {
    let cluster = Cluster::new();
    cluster.up(&[]);
    let machine = AgentMachine::new(&cluster, "machine");
    let command = create(&cluster, "worker-1", &[]);
    let why = machine.refused(&command.replace("--node worker-1", "--node worker-2"));
    assert!(why.contains("worker-1"), "{why}");
    assert_eq!(tokens(&cluster).len(), 1, "a refused use is none");
    assert!(!exists(&machine.state.join("join/worker-2")));
    let nodes = stdout_of(&kubectl(&cluster, "get nodes -o name"));
    assert!(!nodes.contains("worker-2"), "{nodes}");
    stdout_of(&machine.follow(&command));
}

#[test]
fn an_agent_of_the_state_directory_of_a_cluster_is_one_of_its_processes() {
    let cluster = Cluster::new();
    cluster.up(&[]);
    let command = create(&cluster, "worker-1", &[]);
    let mut join: Vec<_> = command.split(' ').skip(1).collect();
    join.extend(["--runtime", "simulated"]);
    stdout_of(&cluster.run(&join));
    let status = stdout_of(&cluster.run(&["status"]));
    assert_eq!(status.matches(" ready\n").count(), 15, "{status}");
    let before = cluster.pids();
    let text = cluster.up(&[]);
    assert!(text.starts_with("Setpoint is running already"), "{text}");
    assert_eq!(cluster.pids(), before);
    cluster.kill("node-agent-of-worker-1");
    let status = cluster.run(&["status"]);
    assert_eq!(status.status.code(), Some(1));
    let text = cluster.up(&[]);
    assert!(
        text.contains("Starting the agent of worker-1, which has joined"),
        "{text}"
    );
    assert_eq!(cluster.pids().len(), 15);
    // Another cluster does not know it.
    cluster.up(&["--fresh"]);
    assert_eq!(cluster.pids().len(), 14);
    assert!(!exists(&cluster.root.path().join(".setpoint/join")));
}

/// Checks V20: a machine without credentials reads what it needs to join.
#[test]
fn everybody_reads_the_address_of_a_cluster_and_no_other_object() {
    let cluster = Cluster::new();
    cluster.up(&[]);
    let ca = cluster.root.path().join(".setpoint/pki/ca.crt");
    let get = |path: &str| {
        let mut curl = Command::new("curl");
        curl.args(["-s", "-o", "-", "-w", "%{http_code}", "--cacert"])
            .arg(&ca);
        curl.arg(format!("https://127.0.0.1:{}{path}", cluster.ports[0]));
        let output = String::from_utf8(curl.output().unwrap().stdout).unwrap();
        let (body, code) = output.split_at(output.len() - 3);
        (code.to_owned(), body.to_owned())
    };
    let info = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
    let map = eventually("it is published", || {
        let (code, body) = get(info);
        (code == "200").then(|| serde_json::from_str::<Value>(&body).unwrap())
    });
    let text = map["data"]["kubeconfig"].as_str().unwrap();
    let server = format!("    server: https://127.0.0.1:{}\n", cluster.ports[0]);
    assert!(text.contains(&server), "{text}");
    assert!(!text.contains("client-"), "{text}");
    for path in [
        "/api/v1/namespaces/kube-public/configmaps",
        "/api/v1/namespaces/kube-system/secrets",
        "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
        "/api/v1/nodes",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    ] {
        assert_eq!(get(path).0, "403", "{path}");
    }
}
