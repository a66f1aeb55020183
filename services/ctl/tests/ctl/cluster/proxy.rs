//! `setpoint up` with networks of Pods and a proxy, in a network namespace of the test.

use std::process::Command;

use setpoint_testkit::enter_namespace;

use crate::cluster::harness::{Cluster, eventually, stdout_of};

fn output_of(line: &str) -> String {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap());
    stdout_of(&command.args(words).output().unwrap())
}

/// Returns the links, routes and tables that clusters have made, and the namespaces of their Pods.
fn made() -> Vec<String> {
    let all = ["ip -o link", "ip route", "nft list tables", "ip netns list"].map(output_of);
    let lines = all.iter().flat_map(|text| text.lines());
    let made = lines.filter(|line| line.contains("setpoint") || line.contains("unreachable"));
    made.map(str::to_owned).collect()
}

/// Runs kubectl in a cluster.
fn kubectl(cluster: &Cluster, line: &str) -> String {
    let kubeconfig = cluster.state_dir().kubeconfig();
    let mut command = Command::new("kubectl");
    command.env("KUBECONFIG", kubeconfig).args(line.split(' '));
    stdout_of(&command.output().unwrap())
}

/// Starts a Deployment whose Pods answer at port 80 with their name, and a Service of it; returns the address of the
/// Service.
fn serve(cluster: &Cluster) -> String {
    kubectl(
        cluster,
        "create deployment web --image=web --replicas=2 -- busybox nc -ll -p 80 -e hostname",
    );
    kubectl(cluster, "expose deployment web --port=80");
    kubectl(cluster, "rollout status deployment/web --timeout=60s");
    kubectl(cluster, "get service web -o jsonpath={.spec.clusterIP}")
}

fn answer(ip: &str) -> String {
    let connect = Command::new("busybox")
        .args(["nc", "-w", "2", ip, "80"])
        .output();
    String::from_utf8(connect.unwrap().stdout).unwrap()
}

/// Waits until a Pod of the cluster answers at an address.
fn answers(cluster: &Cluster, ip: &str) {
    let names = kubectl(cluster, "get pods -o jsonpath={.items[*].metadata.name}");
    eventually("a Pod answers at the address of its Service", || {
        let answer = answer(ip);
        names
            .split(' ')
            .any(|name| answer.trim() == name)
            .then_some(())
    });
}

/// The Pods of both clusters listen on the same port.
#[test]
fn two_clusters_of_a_machine_have_services_and_pods_of_their_own_and_leave_nothing() {
    let test = "cluster::proxy::two_clusters_of_a_machine_have_services_and_pods_of_their_own_and_leave_nothing";
    if !enter_namespace(test, "clusters whose Services carry traffic", &[]) {
        return;
    }
    let (one, two) = (Cluster::new(), Cluster::new());
    for cluster in [&one, &two] {
        let text = cluster.up_on_network(&[]);
        assert!(!text.contains("will "), "{text}");
        for name in ["proxy-0", "dns-0", "dns-1"] {
            assert!(cluster.pids().contains_key(name), "{name}");
        }
    }
    let services = [&one, &two].map(serve);
    assert_ne!(services[0], services[1]);
    answers(&one, &services[0]);
    answers(&two, &services[1]);
    let pod = kubectl(&one, "get pods -o jsonpath={.items[0].metadata.name}");
    let looked_up = kubectl(
        &one,
        &format!("exec {pod} -- getent hosts web.default.svc.cluster.local"),
    );
    assert!(looked_up.starts_with(&services[0]), "{looked_up}");

    stdout_of(&two.run(&["down"]));
    answers(&one, &services[0]);
    // The processes of the first one are killed, as at a crash: what it has made stays, and its next start finds it.
    for name in one.pids().keys() {
        one.kill(name);
    }
    assert!(
        answer(&services[0]).starts_with("web-"),
        "Pods and Services go on"
    );
    one.up_on_network(&[]);
    answers(&one, &services[0]);
    stdout_of(&one.run(&["down"]));
    assert_eq!(made(), [""; 0]);
    // A cluster keeps its addresses.
    two.up_on_network(&[]);
    answers(&two, &services[1]);
    stdout_of(&two.run(&["down"]));
    assert_eq!(made(), [""; 0]);
}
