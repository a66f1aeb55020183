//! A cluster of three machines, which are network namespaces joined by a bridge: etcd, a gateway and controllers join.

use std::fs;
use std::process::Output;
use std::thread;

use nix::sys::signal::Signal;
use setpoint_ctl::launcher::RunningProcess;
use setpoint_testkit::enter_namespace;
use tempfile::TempDir;

use crate::cluster::harness::{eventually, refusal, stdout_of};
use crate::cluster::machine::{MACHINES, Machine};
use crate::cluster::refusals::refusals;

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

    let mut used = Vec::new();
    for machine in [&two, &three] {
        used.push(one.token("etcd", &[]));
        let text = stdout_of(&machine.follow(&used[used.len() - 1]));
        assert!(text.contains("has caught up, and votes"), "{text}");
        assert!(text.ends_with("a member of etcd has joined\n"), "{text}");
    }
    assert_eq!(one.healthy_members(), (3, true));
    its_gateway_outlives_the_first_member(&one);

    refusals(&root, &one);

    let command = one.token("gateway", &[]);
    assert!(command.contains(" https://10.77.0.1:6443 "), "{command}");
    let text = stdout_of(&two.follow(&command));
    assert!(text.ends_with("a gateway has joined\n"), "{text}");
    used.push(command);
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
    let mut expected = vec![
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

    used.push(one.token("agent", &["--node", "n3"]));
    let text = stdout_of(&three.follow(&used[used.len() - 1]));
    assert!(text.ends_with("The node n3 is Ready\n"), "{text}");
    no_token_is_used_twice(&root, &used);
    its_proxy_is_asked(&one);

    // Nothing brings the keys of new CAs to the others.
    let why = refusal(&one.run(&["certs", "--rotate-ca"]));
    let kept = "which keep the CAs that they have joined with: etcd-10-77-0-";
    assert!(why.contains(kept), "{why}");
    for part in [
        "etcd-10-77-0-3",
        "https://10.77.0.2:6443",
        "scheduler-of-10-77-0-3",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert!(
        !why.contains("10-77-0-1") && !why.contains("of-n3"),
        "{why}"
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
        text.contains("Setpoint is down: 10 processes stopped"),
        "{text}"
    );
    stdout_of(&three.run(&["up"]));
    expected.extend(["dns-of-node-n3", "node-agent-of-n3", "proxy-of-n3"]);
    expected.sort_unstable();
    assert_eq!(three.running(), expected);
    eventually("the member votes again", || {
        (two.healthy_members() == (2, true)).then_some(())
    });
    stdout_of(&two.run(&["up"]));
    stdout_of(&two.kubectl("get deployment web"));
}

/// Each is waited for, since it might be a new one.
fn no_token_is_used_twice(root: &TempDir, used: &[String]) {
    thread::scope(|scope| {
        for (number, used) in used.iter().enumerate() {
            scope.spawn(move || {
                let again = Machine::with_state(root, "m3", &format!("again-{number}"));
                let why = again.refused(used);
                assert!(why.contains("has expired, was used or deleted"), "{why}");
            });
        }
    });
}

/// The gateway of the machine knows the member there by its settings alone, and has learned of the others.
fn its_gateway_outlives_the_first_member(one: &Machine<'_>) {
    let gateway = RunningProcess::find(&one.state_dir(), "gateway-0").unwrap();
    eventually("the gateway knows all members", || {
        let log = fs::read_to_string(one.state_dir().log("gateway-0")).unwrap();
        let told = log
            .lines()
            .rev()
            .find(|line| line.contains("these are the members of etcd"));
        let known = |member: &str| told.is_some_and(|told| told.contains(member));
        let all = ["10.77.0.1", "10.77.0.2", "10.77.0.3"]
            .into_iter()
            .all(known);
        all.then_some(())
    });
    let member = RunningProcess::find(&one.state_dir(), "etcd-0").unwrap();
    member.signal(Signal::SIGKILL);
    eventually("the member has ended", || {
        (!member.is_alive()).then_some(())
    });
    eventually("an object is created", || {
        let made = one.kubectl("create configmap without-the-first-member");
        made.status.success().then_some(())
    });
    for _ in 0..20 {
        stdout_of(&one.kubectl("get configmap without-the-first-member"));
    }
    assert!(gateway.is_alive());
    // So does the command, which has seen them.
    assert_eq!(one.healthy_members(), (2, false));
    stdout_of(&one.run(&["up"]));
    eventually("the member votes again", || {
        (one.healthy_members() == (3, true)).then_some(())
    });
}

/// The proxy of a node that has joined answers what it has done for a Service, and so do replicas of other machines.
fn its_proxy_is_asked(one: &Machine<'_>) {
    eventually("the proxy tells what it has done", || {
        let why = stdout_of(&one.run(&["why", "service/kubernetes", "-n", "default"]));
        let is_told = why.contains("Reconciles of proxy-of-n3:");
        (is_told && !why.contains("Did not answer")).then_some(())
    });
}
