//! A cluster of three machines, which are network namespaces joined by a bridge: etcd, a gateway and controllers join.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use setpoint_ctl::launcher::{RunningProcess, StateDir};
use setpoint_testkit::enter_namespace;
use tempfile::TempDir;

use crate::cluster::harness::{eventually, refusal, stdout_of};

/// The set-up of the namespaces `m1` to `m3`, with the addresses 10.77.0.1 to 10.77.0.3.
const MACHINES: [&str; 20] = [
    "link add br0 type bridge",
    "link set br0 up",
    "netns add m1",
    "-n m1 link set lo up",
    "link add v1 type veth peer name eth0 netns m1",
    "link set v1 master br0 up",
    "-n m1 addr add 10.77.0.1/24 dev eth0",
    "-n m1 link set eth0 up",
    "netns add m2",
    "-n m2 link set lo up",
    "link add v2 type veth peer name eth0 netns m2",
    "link set v2 master br0 up",
    "-n m2 addr add 10.77.0.2/24 dev eth0",
    "-n m2 link set eth0 up",
    "netns add m3",
    "-n m3 link set lo up",
    "link add v3 type veth peer name eth0 netns m3",
    "link set v3 master br0 up",
    "-n m3 addr add 10.77.0.3/24 dev eth0",
    "-n m3 link set eth0 up",
];

/// A machine with a state directory. Its processes are stopped when it is dropped.
struct Machine<'a> {
    root: &'a TempDir,
    name: &'static str,
    state: PathBuf,
}

impl<'a> Machine<'a> {
    fn new(root: &'a TempDir, name: &'static str) -> Self {
        Self::with_state(root, name, name)
    }

    /// Returns a machine with another state directory than that of its name.
    fn with_state(root: &'a TempDir, name: &'static str, state: &str) -> Self {
        let state = root.path().join(state);
        Self { root, name, state }
    }

    fn inside(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name, program]);
        command.args(arguments).current_dir(self.root.path());
        command.output().unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let state = self.state.display().to_string();
        let arguments = [&["--state", &state], arguments].concat();
        self.inside(env!("CARGO_BIN_EXE_setpoint"), &arguments)
    }

    /// Makes a token for a process of this kind. Returns the command that joins by it.
    fn token(&self, kind: &str, more: &[&str]) -> String {
        let arguments = ["token", "create", "--print-join-command", "--for", kind];
        let output = self.run(&[&arguments, more].concat());
        stdout_of(&output).trim().to_owned()
    }

    /// Runs a command that [`Self::token`] has returned on some machine.
    fn follow(&self, command: &str) -> Output {
        let words: Vec<_> = command.split_whitespace().skip(1).collect();
        self.run(&words)
    }

    /// Returns why it is refused. Nothing is left behind.
    fn refused(&self, command: &str) -> String {
        let why = refusal(&self.follow(command));
        for left in ["control-plane", "pki", "etcd"] {
            assert!(!self.state.join(left).exists(), "{left}: {why}");
        }
        why
    }

    fn kubectl(&self, line: &str) -> Output {
        let kubeconfig = self.state.join("kubeconfig").display().to_string();
        let words = ["--kubeconfig", &kubeconfig].into_iter();
        let words: Vec<_> = words.chain(line.split(' ')).collect();
        self.inside("kubectl", &words)
    }

    fn state_dir(&self) -> StateDir {
        StateDir::find(self.root.path(), Some(self.state.clone()))
    }

    /// Returns the names of the processes that run.
    fn running(&self) -> Vec<String> {
        let names = self.state_dir().recorded().into_iter();
        let runs = |name: &String| RunningProcess::find(&self.state_dir(), name).is_some();
        names.filter(runs).collect()
    }

    /// Kills all processes at once, as when the machine loses its power.
    fn die(&self) {
        for name in self.running() {
            if let Some(process) = RunningProcess::find(&self.state_dir(), &name) {
                process.signal(Signal::SIGKILL);
            }
        }
        eventually("all processes have ended", || {
            self.running().is_empty().then_some(())
        });
    }

    /// Returns the rows of the members of etcd that are healthy, and whether all are.
    fn healthy_members(&self) -> (usize, bool) {
        let output = self.run(&["members"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let healthy = text
            .lines()
            .filter(|line| line.trim_end().ends_with(" healthy"));
        (healthy.count(), output.status.success())
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        self.run(&["down"]);
    }
}

#[test]
fn a_cluster_of_three_machines_goes_on_without_the_first_one() {
    let test = "cluster::control_plane::a_cluster_of_three_machines_goes_on_without_the_first_one";
    if !enter_namespace(test, "a control plane on three machines", &MACHINES) {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let [one, two, three] = ["m1", "m2", "m3"].map(|name| Machine::new(&root, name));
    stdout_of(&one.run(&["up", "--machine", "10.77.0.1", "--profile", "fast"]));
    assert_eq!(one.healthy_members(), (1, true));

    // One that does not start is no member, and leaves nothing behind.
    let log = three.state.join("log/etcd-of-10-77-0-3.log");
    fs::create_dir_all(&log).unwrap();
    fs::create_dir_all(three.state.join("run")).unwrap();
    let why = three.refused(&one.token("etcd", &[]));
    assert!(why.contains("cannot write"), "{why}");
    fs::remove_dir(&log).unwrap();
    assert_eq!(one.healthy_members(), (1, true));

    for machine in [&two, &three] {
        let text = stdout_of(&machine.follow(&one.token("etcd", &[])));
        assert!(text.contains("has caught up, and votes"), "{text}");
        assert!(text.ends_with("a member of etcd has joined\n"), "{text}");
    }
    assert_eq!(one.healthy_members(), (3, true));

    refusals(&root, &one);

    let command = one.token("gateway", &[]);
    assert!(command.contains(" https://10.77.0.1:6443 "), "{command}");
    let text = stdout_of(&two.follow(&command));
    assert!(text.ends_with("a gateway has joined\n"), "{text}");
    let why = two.follow(&one.token("gateway", &[]));
    let why = String::from_utf8_lossy(&why.stderr).into_owned();
    assert!(why.contains("a gateway has joined in m2 already"), "{why}");
    stdout_of(&two.kubectl("get namespaces"));
    eventually("both gateways are endpoints of the API", || {
        let ip = "jsonpath={.subsets[*].addresses[*].ip}";
        let found = two.kubectl(&format!("get endpoints kubernetes -o {ip}"));
        (found.stdout == b"10.77.0.1 10.77.0.2").then_some(())
    });

    let command = two.token("controller", &[]);
    let both = " https://10.77.0.1:6443,https://10.77.0.2:6443 ";
    assert!(command.contains(both), "{command}");
    stdout_of(&three.follow(&command));
    let expected = [
        "certs-0",
        "controller-manager-of-10-77-0-3",
        "deployment-controller-of-10-77-0-3",
        "dns-of-10-77-0-3",
        "etcd-of-10-77-0-3",
        "replicaset-controller-of-10-77-0-3",
        "scheduler-of-10-77-0-3",
    ];
    assert_eq!(three.running(), expected);
    let status = stdout_of(&three.run(&["status"]));
    assert_eq!(
        status.matches(" ready\n").count(),
        expected.len(),
        "{status}"
    );

    one.die();
    eventually("etcd has a leader, and an object is created", || {
        two.kubectl("create deployment web --image=web --replicas=2");
        let found = two.kubectl("get deployment web");
        found.status.success().then_some(())
    });
    eventually(
        "the controllers of the third machine have taken over",
        || {
            let sets = two.kubectl("get replicasets -o name");
            let pods = two.kubectl("get pods -o name");
            let lines = |output: &Output| String::from_utf8_lossy(&output.stdout).lines().count();
            (lines(&sets) == 1 && lines(&pods) == 2).then_some(())
        },
    );

    // The dead machine is removed, and another one could take its place.
    assert_eq!(two.healthy_members(), (2, false));
    stdout_of(&two.run(&["members", "--remove", "etcd-10-77-0-1"]));
    assert_eq!(two.healthy_members(), (2, true));
    let command = two.token("etcd", &[]);
    assert!(command.contains("https://10.77.0.2:6443"), "{command}");

    // What has joined is stopped and started with its machine, and its membership stays.
    let text = stdout_of(&three.run(&["down"]));
    assert!(
        text.contains("Setpoint is down: 7 processes stopped"),
        "{text}"
    );
    stdout_of(&three.run(&["up"]));
    assert_eq!(three.running(), expected);
    eventually("the member votes again", || {
        (two.healthy_members() == (2, true)).then_some(())
    });
    stdout_of(&two.run(&["up"]));
    stdout_of(&two.kubectl("get deployment web"));
}

/// Each reason is told in its own words, and leaves nothing behind.
fn refusals(root: &TempDir, one: &Machine<'_>) {
    let other = Machine::with_state(root, "m3", "refused");
    let command = one.token("gateway", &["--ttl", "5m"]);
    let why = other.refused(&command.replace("join gateway", "join controller"));
    let expected = "was made for something else than a replica of the controllers";
    assert!(why.contains(expected), "{why}");

    let (_, hash) = command.split_once("--ca-cert-hash sha256:").unwrap();
    let hash = &hash[..64];
    let why = other.refused(&command.replace(hash, &"0".repeat(64)));
    assert!(why.contains("the CA of this cluster has the hash"), "{why}");

    let (_, key) = command.split_once("--certificate-key ").unwrap();
    let why = other.refused(&command.replace(key, &"0".repeat(64)));
    assert!(why.contains("--certificate-key does not decrypt"), "{why}");

    let why = other.refused(&format!("{command} --address 10.77.0.9"));
    let expected = "this machine does not have the address 10.77.0.9";
    assert!(why.contains(expected), "{why}");

    // None of these has used the token up. Deleted, it hands over nothing more.
    let list = stdout_of(&one.run(&["token", "list"]));
    let id = command.split_once("--token ").unwrap().1[..6].to_owned();
    let row = list.lines().find(|line| line.starts_with(&id));
    assert!(row.is_some_and(|row| row.contains(" gateway ")), "{list}");
    stdout_of(&one.run(&["token", "delete", &id]));
    let why = other.refused(&command);
    assert!(why.contains("has expired, was used or deleted"), "{why}");
    eventually("what it would have handed over is gone", || {
        let found = one.kubectl("get secrets,roles,rolebindings -n kube-system -o name");
        let text = String::from_utf8_lossy(&found.stdout).into_owned();
        (found.status.success() && !text.contains("setpoint-join-")).then_some(())
    });

    let expired = one.token("controller", &["--ttl", "1s"]);
    eventually("it is removed", || {
        let list = stdout_of(&one.run(&["token", "list", "-o", "json"]));
        (list.trim() == "[]").then_some(())
    });
    let why = other.refused(&expired);
    assert!(why.contains("has expired, was used or deleted"), "{why}");

    let used = one.token("controller", &[]);
    stdout_of(&other.follow(&used));
    stdout_of(&other.run(&["down"]));
    let again = Machine::with_state(root, "m3", "again");
    let why = again.refused(&used);
    assert!(why.contains("has expired, was used or deleted"), "{why}");
}
