//! A cluster of three machines, each a set of namespaces with a containerd: `deploy/machines`.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use setpoint_ctl::launcher::{StateDir, program};
use setpoint_tests::{Kubectl, Output, eventually};
use tempfile::TempDir;

use crate::services::load::{Load, ask};
use crate::web::{is_ready, text};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/machines");
const MACHINES: [&str; 3] = ["m1", "m2", "m3"];
/// The number of the network: 10.254.0.0/24 is that of a user.
const NUMBER: &str = "7";
/// The address at which Pods ask the DNS of their node.
const NODE_DNS: &str = "169.254.20.10";
/// Settings by which a dead machine is noticed soon.
const SETTINGS: [(&str, &str); 3] = [
    ("SETPOINT__HEARTBEAT", "2s"),
    ("SETPOINT__NODE_LIFECYCLE__MONITOR_GRACE_PERIOD", "8s"),
    ("SETPOINT__NODE_LIFECYCLE__MONITOR_PERIOD", "1s"),
];

/// The variable with which the test goes on with what takes minutes.
const LONG: &str = "SETPOINT_LONG_MACHINES";

/// The machines, which end when dropped.
struct Machines(TempDir);

impl Machines {
    /// `None`, with a message, where they cannot run.
    fn start() -> Option<Self> {
        let machines = Self(TempDir::new().unwrap());
        let output = machines.run("up --profile fast");
        if !output.success
            && ["namespaces need root", "missing: "]
                .iter()
                .any(|why| output.stderr.contains(why))
        {
            eprintln!(
                "SKIPPED: no cluster of several machines: {}",
                output.stderr.trim()
            );
            return None;
        }
        assert!(output.success, "{}{}", output.stdout, output.stderr);
        Some(machines)
    }

    fn directory(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, arguments: &str) -> Output {
        let mut command = self.command();
        command.args(arguments.split_whitespace());
        Output::from(command.output().unwrap())
    }

    fn command(&self) -> Command {
        let programs = program("setpoint").unwrap();
        let mut command = Command::new(SCRIPT);
        command
            .env("SETPOINT_MACHINES", self.directory())
            .env("SETPOINT_MACHINES_NUMBER", NUMBER)
            .env("SETPOINT_PROGRAMS", programs.parent().unwrap())
            .envs(SETTINGS);
        command
    }

    fn ok(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let Output { stdout, stderr, .. } = &output;
        assert!(
            output.success,
            "deploy/machines {arguments}: {stdout}{stderr}"
        );
        output.stdout
    }

    /// Kills the DNS of a node.
    fn end_dns(&self, machine: &str) {
        let state = self.directory().join(machine).join("state");
        let pid =
            StateDir::find(&state, Some(state.clone())).pid(&format!("dns-of-node-{machine}"));
        let pid = fs::read_to_string(pid).unwrap();
        let kill = format!("kill -KILL {pid}");
        // The numbers of processes are those of the machine.
        let ended = self
            .command()
            .args(["on", machine, "bash", "-c", &kill])
            .status();
        assert!(ended.unwrap().success());
    }

    /// Returns kubectl at the gateway of a machine.
    fn kubectl(&self, machine: &str) -> Kubectl {
        let url = format!("https://{}:6443", address(machine));
        Kubectl::new(self.directory().to_owned()).at(&url)
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        self.run("down");
    }
}

fn address(machine: &str) -> String {
    format!("10.254.{NUMBER}.{}", machine.trim_start_matches('m'))
}

/// One test, because starting the machines takes most of the time.
#[test]
fn an_application_on_three_machines_survives_the_death_and_the_isolation_of_one() {
    let Some(machines) = Machines::start() else {
        return;
    };
    let kubectl = machines.kubectl("m2");
    nodes_are_ready(&kubectl, &MACHINES);
    parts_talk_by_name(&machines, &kubectl);
    let at = serve(&kubectl);
    // The node port of a machine that stays.
    let load = Load::start(at);
    load.goes_on();
    assert_eq!(load.failures(), 0);
    rollouts_and_drains_lose_nothing(&kubectl, &load);
    let written = write(&kubectl, "before", 20);
    machines.ok("kill m3");
    a_dead_machine_is_replaced(&kubectl, &load, "m3");
    all_exist(&kubectl, &written);
    if std::env::var_os(LONG).is_none() {
        eprintln!(
            "SKIPPED: the return of the machine, cuts and a restart of all, which {LONG}=1 runs"
        );
        load.end();
        return;
    }
    let written = write(&kubectl, "meanwhile", 20);
    machines.ok("start m3");
    nodes_are_ready(&kubectl, &MACHINES);
    a_cut_is_healed(&machines, &kubectl);
    all_exist(&machines.kubectl("m3"), &written);
    load.end();
    for machine in MACHINES {
        machines.ok(&format!("kill {machine}"));
    }
    // The first one alone has no quorum: all start at once.
    std::thread::scope(|scope| {
        for machine in MACHINES {
            let machines = &machines;
            scope.spawn(move || machines.ok(&format!("start {machine}")));
        }
    });
    nodes_are_ready(&kubectl, &MACHINES);
    all_exist(&kubectl, &written);
    eventually("the Service answers again", || {
        ask(at).map_err(|error| error.to_string())
    });
}

fn nodes_are_ready(kubectl: &Kubectl, names: &[&str]) {
    eventually("the nodes are Ready", || {
        let output = kubectl.run("get nodes -o json");
        let nodes: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
        let nodes = nodes["items"].as_array().cloned().unwrap_or_default();
        let ready = nodes.iter().filter(|node| is_ready(node));
        let ready: Vec<_> = ready.map(|node| text(node, "/metadata/name")).collect();
        (ready == names)
            .then_some(())
            .ok_or(format!("{ready:?} {}", output.stderr))
    });
}

/// Returns a Pod, or the template of one, that runs this command of busybox on a machine, or anywhere.
fn pod(name: &str, machine: Option<&str>, command: &[&str]) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": {
            "terminationGracePeriodSeconds": 3,
            "containers": [{
                "name": "main", "image": "busybox:latest", "imagePullPolicy": "Never", "command": command,
            }],
        },
    });
    if let Some(machine) = machine {
        pod["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": machine });
    }
    pod
}

/// Applies an object, again if the outcome is unknown: etcd may be electing another leader.
fn apply(kubectl: &Kubectl, object: &Value) {
    eventually("the object is applied", || {
        let output = kubectl.with("apply", &object.to_string());
        output.success.then_some(()).ok_or(output.stderr)
    });
}

/// A leader, a follower and a page in front of them, each on a machine of its own.
fn parts_talk_by_name(machines: &Machines, kubectl: &Kubectl) {
    let relay = |to: &str| format!("echo -n '<'; nc -w 5 {to} 8080; echo -n '>'");
    for (name, machine, script) in [
        ("leader", "m1", "echo -n leader".to_owned()),
        ("follower", "m2", relay("leader")),
        ("front", "m3", relay("follower.default.svc.cluster.local")),
    ] {
        let serve =
            format!("echo \"{script}\" > /tmp/answer; exec nc -ll -p 8080 -e sh /tmp/answer");
        apply(kubectl, &pod(name, Some(machine), &["sh", "-c", &serve]));
        kubectl.ok(&format!("expose pod {name} --port=8080"));
    }
    let is_complete = || {
        let said = kubectl.run("exec leader -- nc -w 10 front 8080");
        (said.stdout == "<<leader>>")
            .then_some(())
            .ok_or(said.stdout + &said.stderr)
    };
    eventually("the page has what the leader says", is_complete);
    let leader = kubectl.json("get service leader");
    let ip = text(&leader, "/spec/clusterIP");
    for pod in ["leader", "follower", "front"] {
        let name = "leader.default.svc.cluster.local";
        let asked = kubectl.ok(&format!("exec {pod} -- nslookup {name} {NODE_DNS}"));
        assert!(asked.contains(ip), "{pod}: {asked}");
    }
    machines.end_dns("m1");
    let refused = kubectl.run(&format!("exec leader -- nslookup leader {NODE_DNS}"));
    assert!(!refused.success, "{}", refused.stdout);
    eventually("the DNS of other machines answers", is_complete);
    kubectl.ok("delete pod leader follower front --now");
}

/// Starts six Pods on the three machines that answer with their name, and returns the node port of their Service.
fn serve(kubectl: &Kubectl) -> SocketAddr {
    let mut pod = pod("web", None, &["nc", "-ll", "-p", "80", "-e", "hostname"]);
    let (labels, spec) = (
        pod["metadata"]["labels"].take(),
        pod["spec"].as_object_mut().unwrap(),
    );
    spec["containers"][0]["readinessProbe"] =
        json!({ "tcpSocket": { "port": 80 }, "periodSeconds": 1 });
    // Connections come until all proxies know that the Pod ends.
    spec["containers"][0]["lifecycle"] = json!({ "preStop": { "sleep": { "seconds": 2 } } });
    let lost = |key: &str| {
        json!({
            "key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 1,
        })
    };
    spec.insert(
        "tolerations".into(),
        json!([lost("not-ready"), lost("unreachable")]),
    );
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 6,
            "strategy": { "rollingUpdate": { "maxSurge": 3, "maxUnavailable": 0 } },
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": spec },
        },
    });
    apply(kubectl, &deployment);
    kubectl.ok("rollout status deployment/web --timeout=60s");
    kubectl.ok("expose deployment web --type NodePort --port=80");
    let service = kubectl.json("get service web");
    let port = service["spec"]["ports"][0]["nodePort"].as_u64().unwrap();
    let at = format!("{}:{port}", address("m1")).parse().unwrap();
    eventually("the Service answers on each machine", || {
        ask(at).map_err(|error| error.to_string())
    });
    at
}

fn rollouts_and_drains_lose_nothing(kubectl: &Kubectl, load: &Load) {
    kubectl.ok("rollout restart deployment/web");
    kubectl.ok("rollout status deployment/web --timeout=60s");
    load.goes_on();
    kubectl.ok("drain m3 --ignore-daemonsets --timeout=60s");
    kubectl.ok("uncordon m3");
    kubectl.ok("rollout restart deployment/web");
    kubectl.ok("rollout status deployment/web --timeout=60s");
    load.goes_on();
    assert_eq!(load.failures(), 0);
}

/// Creates ConfigMaps, and returns the names of those that were acknowledged.
fn write(kubectl: &Kubectl, prefix: &str, count: usize) -> Vec<String> {
    let names = (0..count).map(|number| format!("{prefix}-{number}"));
    let maps = names.clone().map(
        |name| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } }),
    );
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": maps.collect::<Vec<_>>() });
    apply(kubectl, &list);
    names.collect()
}

fn exists(kubectl: &Kubectl, name: &str) -> bool {
    kubectl.run(&format!("get configmap {name}")).success
}

/// Waits for the answers, since etcd may elect another leader meanwhile. What was acknowledged is never absent.
fn all_exist(kubectl: &Kubectl, names: &[String]) {
    for name in names {
        eventually("an object that was written is there", || {
            let read = kubectl.run(&format!("get configmap {name}"));
            assert!(!read.stderr.contains("NotFound"), "{}", read.stderr);
            read.success.then_some(()).ok_or(read.stderr)
        });
    }
}

/// Its Pods are replaced on the others; once it is known to be dead, no request is lost.
fn a_dead_machine_is_replaced(kubectl: &Kubectl, load: &Load, dead: &str) {
    eventually("all Pods are on the others", || {
        // etcd may elect another leader first.
        let output = kubectl.run("get pods -l app=web -o json");
        let list: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        let elsewhere = pods
            .iter()
            .filter(|pod| text(pod, "/spec/nodeName") != dead);
        let ready = elsewhere.filter(|pod| is_ready(pod)).count();
        (ready == 6)
            .then_some(())
            .ok_or(format!("{ready} of {}", pods.len()))
    });
    eventually("no request is lost", || {
        let before = load.failures();
        load.goes_on();
        let after = load.failures();
        (before == after)
            .then_some(())
            .ok_or_else(|| format!("{:?}", load.errors()))
    });
}

/// Two machines that do not reach each other: both reach the third one, and the cluster goes on.
fn a_cut_is_healed(machines: &Machines, kubectl: &Kubectl) {
    machines.ok("cut m1 m2");
    for machine in MACHINES {
        let name = format!("cut-{machine}");
        eventually("a gateway takes writes", || {
            let made = machines
                .kubectl(machine)
                .run(&format!("create configmap {name}"));
            (made.success || exists(&machines.kubectl(machine), &name))
                .then_some(())
                .ok_or(made.stderr)
        });
    }
    machines.ok("heal");
    nodes_are_ready(kubectl, &MACHINES);
    all_exist(kubectl, &MACHINES.map(|machine| format!("cut-{machine}")));
}
