//! Services of Pods with networks of their own: what `setpoint up` starts, in a network namespace of the test.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use setpoint_ctl::launcher::program;
use setpoint_testkit::enter_namespace;
use setpoint_tests::eventually;

use super::load::{Load, ask};
use super::local::{Local, NETWORK, WHAT, serve};

/// Checks ES2.
#[test]
fn no_request_is_lost_by_scaling_a_rollout_a_drained_node_or_dead_processes() {
    let test =
        "services::pods::no_request_is_lost_by_scaling_a_rollout_a_drained_node_or_dead_processes";
    if !enter_namespace(test, WHAT, &NETWORK) {
        return;
    }
    let local = Local::up();
    let kubectl = local.kubectl();
    let at = serve(&kubectl, 2);
    let load = Load::start(at);
    load.goes_on();
    let rolled_out = || {
        kubectl.ok("rollout status deployment/web --timeout=120s");
        load.goes_on();
    };
    kubectl.ok("scale deployment/web --replicas=5");
    rolled_out();
    kubectl.ok("scale deployment/web --replicas=3");
    rolled_out();
    kubectl.ok("rollout restart deployment/web");
    rolled_out();
    kubectl.ok("drain node-0 --ignore-daemonsets --timeout=60s");
    rolled_out();
    kubectl.ok("uncordon node-0");
    for dead in ["proxy-0", "gateway-0", "node-agent-1"] {
        local.kill(dead);
        load.goes_on();
    }
    local.start(&[]);
    kubectl.ok("rollout restart deployment/web");
    rolled_out();
    let (count, failed) = load.end();
    assert!(failed.is_empty() && count > 200, "{failed:?} of {count}");
}

/// Connections to a Pod whose process is killed are refused until the proxy knows.
#[test]
fn a_killed_pod_loses_no_request_once_the_proxy_knows() {
    let test = "services::pods::a_killed_pod_loses_no_request_once_the_proxy_knows";
    if !enter_namespace(test, WHAT, &NETWORK) {
        return;
    }
    let local = Local::up();
    let kubectl = local.kubectl();
    let load = Load::start(serve(&kubectl, 3));
    load.goes_on();
    assert_eq!(load.failures(), 0);
    let pods = kubectl.json("get pods");
    local.kill_container(&pods["items"][0]);
    let ip = pods["items"][0]["status"]["podIP"].as_str().unwrap();
    let before = eventually("requests go on without failures", || {
        let before = load.failures();
        load.goes_on();
        let after = load.failures();
        (after == before).then_some(before).ok_or(after.to_string())
    });
    kubectl.ok("rollout status deployment/web --timeout=120s");
    load.goes_on();
    let (count, failed) = load.end();
    assert_eq!(failed.len(), before, "{failed:?} of {count}");
    println!("{before} of {count} requests were lost when the Pod at {ip} was killed");
}

/// Checks ES1: no packet for an address that nobody has leaves the machine. Two Pods listen on the same port and see
/// their clients' addresses, and a Pod finds itself, the API and names.
#[test]
fn pods_find_each_other_and_the_api() {
    let test = "services::pods::pods_find_each_other_and_the_api";
    if !enter_namespace(test, WHAT, &NETWORK) {
        return;
    }
    let local = Local::up();
    let kubectl = local.kubectl();
    let at = serve(&kubectl, 2);
    let pods = kubectl.json("get pods");
    let name = |index: usize| pods["items"][index]["metadata"]["name"].as_str().unwrap();
    let ip = |index: usize| pods["items"][index]["status"]["podIP"].as_str().unwrap();
    let within = |command: &str| kubectl.run(&format!("exec {} -- {command}", name(0)));
    let connect = |to: &str| within(&format!("busybox nc -w 2 {to} 80")).stdout;
    // To itself, to the other, and to either by name: a Pod that is its own endpoint answers itself.
    assert_eq!(connect(ip(0)).trim(), name(0));
    assert_eq!(connect(ip(1)).trim(), name(1));
    for index in 0..2 {
        eventually("each endpoint answers by the name of the Service", || {
            let answer = connect("web.default.svc.cluster.local");
            (answer.trim() == name(index)).then_some(()).ok_or(answer)
        });
    }
    assert_eq!(within("hostname").stdout.trim(), name(0));
    let resolver = within("cat /etc/resolv.conf").stdout;
    let (search, server) = ("search default.svc.cluster.local", "nameserver 10.");
    assert!(
        resolver.starts_with(search) && resolver.contains(server),
        "{resolver}"
    );
    let version = within("curl -sk https://kubernetes.default/version").stdout;
    assert!(version.contains("gitVersion"), "{version}");
    // Nobody has these addresses.
    let unowned = SocketAddr::new(at.ip(), 81);
    assert_eq!(
        ask(unowned).unwrap_err().kind(),
        std::io::ErrorKind::ConnectionRefused
    );
    for nobody in ["10.96.255.254", "10.244.255.254"] {
        let refused = ask(format!("{nobody}:80").parse().unwrap()).unwrap_err();
        assert!(
            refused.kind() != std::io::ErrorKind::TimedOut,
            "{nobody}: {refused}"
        );
    }
}

/// The user nobody.
pub const NOBODY: u32 = 65_534;

/// Returns whether the user nobody may run the programs under test; says so if not.
pub fn nobody_runs_programs() -> bool {
    let mut version = Command::new(program("setpoint").unwrap());
    version.arg("--version").uid(NOBODY).gid(NOBODY);
    let runs = version.output().is_ok_and(|output| output.status.success());
    if !runs {
        eprintln!(
            "SKIPPED: a cluster without root was NOT tested: others may not run its programs"
        );
    }
    runs
}

#[test]
fn without_root_services_carry_traffic_through_sockets_and_an_event_names_ports_that_need_a_right()
{
    let test = "services::pods::without_root_services_carry_traffic_through_sockets_and_an_event_names_ports_that_need_a_right";
    if !enter_namespace(test, "a cluster without root", &NETWORK) || !nobody_runs_programs() {
        return;
    }
    let local = Local::new(Some(NOBODY));
    local.start(&[]);
    let kubectl = local.kubectl();
    kubectl.ok("create deployment web --image=web -- busybox nc -ll -p 8080 -e hostname");
    kubectl.ok("create service nodeport web --tcp=8081:8080 --tcp=80:8080");
    kubectl.ok("rollout status deployment/web --timeout=120s");
    let service = kubectl.json("get service web");
    let ip = service["spec"]["clusterIP"].as_str().unwrap();
    assert!(ip.starts_with("127."), "{ip}");
    let ports = [
        format!("{ip}:8081"),
        format!("127.0.0.1:{}", service["spec"]["ports"][0]["nodePort"]),
    ];
    for at in ports {
        let at: SocketAddr = at.parse().unwrap();
        eventually("a Pod answers", || {
            ask(at).map(drop).map_err(|error| format!("{at}: {error}"))
        });
    }
    eventually("an Event names the port 80", || {
        let events = kubectl
            .run("get events --field-selector=reason=FailedToListen")
            .stdout;
        events
            .contains(&format!("{ip}:80"))
            .then_some(())
            .ok_or(events)
    });
}
