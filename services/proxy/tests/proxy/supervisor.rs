//! The parent of a proxy: a child that is killed is started again, and only what was in flight is lost.

use std::io::Read as _;
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use setpoint_proxy::Backend as _;
use setpoint_proxy::userspace::supervisor::{Parent, sockets};
use setpoint_proxy::userspace::{Limits, Userspace};

use crate::contract::{PORT, at};
use crate::machine::Namespace;
use crate::objects::{Scene, here, ready};
use crate::world::{Loopback, World as _};

const PATIENCE: Duration = Duration::from_secs(20);
/// The variables of the child of this test: its Service, its endpoint, and the file for its number.
const VARIABLES: [&str; 3] = ["TEST_PROXY_SERVICE", "TEST_PROXY_POD", "TEST_PROXY_PID"];

/// The child: a back end with one Service, until the file for its number is gone.
#[test]
#[ignore = "the test of the parent runs it"]
fn child() {
    let [Ok(service), Ok(pod), Ok(file)] = VARIABLES.map(env::var) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut backend = Userspace::new(sockets().unwrap(), Limits::default(), Box::new(|_, _| ()));
    let ports = json!([{"name": "http", "protocol": "TCP", "port": PORT}]);
    let scene = Scene::new("web", &service).spec(json!({"ports": ports}));
    let scene = scene.slice(8080, &[ready(&pod, "here")]);
    runtime.block_on(async {
        backend.sync(&here(), scene.changes(&here())).await.unwrap();
    });
    fs::write(&file, std::process::id().to_string()).unwrap();
    while Path::new(&file).exists() {
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the number of a child other than `before`.
fn child_after(file: &Path, before: Option<i32>) -> i32 {
    let until = Instant::now() + PATIENCE;
    loop {
        let number = fs::read_to_string(file).ok();
        let number = number.and_then(|number| number.parse().ok());
        if let Some(number) = number.filter(|number| Some(*number) != before) {
            return number;
        }
        assert!(Instant::now() < until, "a child starts");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A request: when it began, when it ended, and whether it was answered.
type Request = (Instant, Instant, bool);

/// Sends requests until the time is over, one each 5 ms, whatever becomes of the former ones.
fn requests(network: &Namespace, to: &str, time: Duration) -> Vec<Request> {
    let start = Instant::now();
    thread::scope(|scope| {
        let mut requests = Vec::new();
        for number in 0.. {
            let begin = start + Duration::from_millis(5) * number;
            if begin > start + time {
                break;
            }
            thread::sleep(begin.saturating_duration_since(Instant::now()));
            requests.push(scope.spawn(move || {
                let begin = Instant::now();
                let mut answer = String::new();
                let stream = network.open(Ipv4Addr::UNSPECIFIED, to);
                let read = stream.and_then(|mut stream| stream.read_to_string(&mut answer));
                let answered = read.is_ok() && answer.starts_with("pod1 ");
                (begin, Instant::now(), answered)
            }));
        }
        let ended = requests.into_iter().map(|one| one.join().unwrap());
        ended.collect()
    })
}

#[test]
fn only_what_is_in_flight_is_lost_when_a_child_is_killed() {
    let world = Loopback::new(1).unwrap();
    let folder = env::temp_dir().join(format!("proxy-supervisor-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("pid");
    let program = env::current_exe().unwrap().display().to_string();
    let command = world.network.command(&program);
    let values = [
        world.service(10).to_string(),
        world.pod(1).to_string(),
        file.display().to_string(),
    ];
    let enter = world.mover();
    let parent = thread::spawn(move || {
        // The parent opens the sockets.
        enter();
        Parent::new().unwrap().run(|| {
            let mut child = Command::new(&command[0]);
            child.args(&command[1..]);
            child.args(["--exact", "supervisor::child", "--ignored"]);
            child.envs(VARIABLES.into_iter().zip(&values));
            child.stdout(Stdio::null());
            child
        })
    });
    let first = child_after(&file, None);
    let (to, network) = (at(world.service(10)), &world.network);
    let (requests, kills) = thread::scope(|scope| {
        let sent = scope.spawn(|| requests(network, &to, Duration::from_secs(3)));
        let mut child = first;
        let kills: Vec<_> = (0..2)
            .map(|_| {
                thread::sleep(Duration::from_millis(700));
                kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
                let at = Instant::now();
                child = child_after(&file, Some(child));
                at
            })
            .collect();
        (sent.join().unwrap(), kills)
    });
    let lost: Vec<_> = requests
        .iter()
        .filter(|(_, _, answered)| !answered)
        .collect();
    println!("{} requests, {} lost", requests.len(), lost.len());
    assert!(requests.len() > 550, "{}", requests.len());
    for (begin, end, _) in &lost {
        let in_flight = |kill: &Instant| begin < kill && kill < end;
        assert!(kills.iter().any(in_flight), "{lost:?} {kills:?}");
    }
    // A child that ends by itself ends the parent.
    fs::remove_dir_all(&folder).unwrap();
    let status = parent.join().unwrap().unwrap();
    assert!(status.success(), "{status}");
}

/// A proxy of its own, without a gateway, which is killed when it is dropped.
struct Proxy(Child);

impl Proxy {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_proxy"));
        command.args(["--tls-plaintext", "--gateway-address"]);
        command.args(["http://127.0.0.1:9", "--backend", "userspace"]);
        command.args(arguments).current_dir(env::temp_dir());
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }

    /// Returns the number of the child, which is another one than `before`.
    fn child(&self, before: Option<i32>) -> i32 {
        let (parent, until) = (self.0.id(), Instant::now() + PATIENCE);
        loop {
            let children = format!("/proc/{parent}/task/{parent}/children");
            let children = fs::read_to_string(children).unwrap();
            let child = children.trim().parse().ok();
            // It is ready to be stopped once it has threads.
            let threads = |child: &i32| {
                let tasks = fs::read_dir(format!("/proc/{child}/task"));
                tasks.map_or(0, Iterator::count)
            };
            let other = child.filter(|child| Some(*child) != before && threads(child) > 3);
            if let Some(child) = other {
                return child;
            }
            assert!(Instant::now() < until, "the parent has a child");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn signal(pid: i32, signal: Signal) {
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    fn pid(&self) -> i32 {
        self.0.id().try_into().unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

#[test]
fn a_process_restarts_its_child_and_ends_with_it() {
    let mut proxy = Proxy::start(&[]);
    let first = proxy.child(None);
    Proxy::signal(first, Signal::KILL);
    let second = proxy.child(Some(first));
    thread::sleep(Duration::from_millis(300));
    Proxy::signal(proxy.pid(), Signal::TERM);
    let status = proxy.0.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(!Path::new(&format!("/proc/{second}/task")).exists());
}

#[test]
fn a_child_ends_with_its_parent() {
    let mut proxy = Proxy::start(&[]);
    let child = proxy.child(None);
    thread::sleep(Duration::from_millis(300));
    Proxy::signal(proxy.pid(), Signal::KILL);
    assert_eq!(proxy.0.wait().unwrap().signal(), Some(9));
    let (state, until) = (format!("/proc/{child}/stat"), Instant::now() + PATIENCE);
    // One that has ended may wait for init to collect it.
    while fs::read_to_string(&state).is_ok_and(|state| !state.contains(") Z ")) {
        assert!(Instant::now() < until, "the child ends");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn wrong_settings_end_the_process_with_64() {
    let mut proxy = Proxy::start(&["--userspace-connections", "0"]);
    assert_eq!(proxy.0.wait().unwrap().code(), Some(64));
    let mut proxy = Proxy::start(&["--node-port-addresses", "127.0.0.0/8"]);
    assert_eq!(proxy.0.wait().unwrap().code(), Some(64));
}
