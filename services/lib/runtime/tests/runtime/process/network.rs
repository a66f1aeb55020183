//! Pods with networks of their own, with real namespaces.

mod reuse;

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use setpoint_runtime::contract::{ALL_OUTPUT, Fixture, Woken, container, id, pod, sandbox, uid};
use setpoint_runtime::process::{Network, Processes, sweep};
use setpoint_runtime::{HostPort, LogOptions, Runtime as _, SandboxConfig};
use tempfile::TempDir;
use tokio::time::sleep;

use super::fixture::PROGRAM;

/// The time that a connection may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A bridge with the address of a node, which is removed when it is dropped. Its addresses are those of a range for
/// tests of networks (RFC 2544), which has no others.
struct Bridge {
    name: String,
    number: u8,
}

impl Bridge {
    /// Returns one; `None` if this process may make none, which it says.
    fn new() -> Option<Self> {
        let allowed = Command::new("unshare")
            .args(["-n", "nft", "list", "tables"])
            .output();
        if !allowed.is_ok_and(|output| output.status.success()) {
            eprintln!("SKIPPED: networks of Pods were NOT tested: that takes root, ip and nft");
            return None;
        }
        let number = u8::try_from(std::process::id() % 256).unwrap();
        let name = format!("sptest{}", std::process::id());
        let bridge = Self { name, number };
        // As that of a cluster, whose address stays when a Pod comes or goes.
        ip(&format!(
            "link add {} address 02:73:70:00:00:00 type bridge",
            bridge.name
        ));
        ip(&format!(
            "address add {}/32 dev {}",
            bridge.node(),
            bridge.name
        ));
        ip(&format!("link set {} up", bridge.name));
        Some(bridge)
    }

    fn node(&self) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.number, 1)
    }

    fn pod(&self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(198, 19, self.number, host)
    }

    fn open(&self, state: &Path, woken: &Woken) -> Processes {
        let network = Network::new(&self.name, self.node(), state);
        Processes::open(state, PROGRAM, Some(network), woken.wake()).unwrap()
    }

    async fn fixture(&self, state: &Arc<TempDir>) -> Fixture<Processes> {
        let woken = Woken::default();
        let runtime = self.open(state.path(), &woken);
        let range = format!("{}/24", self.pod(0));
        assert!(runtime.network_ready().is_err());
        runtime.set_pod_range(&range).await.unwrap();
        assert_eq!(runtime.network_ready(), Ok(()));
        Fixture::new(runtime, crate::MACHINE, woken, Arc::clone(state))
    }

    /// Runs `work` as one life of an agent: its tasks end with the closure, the containers do not.
    fn with_agent<T>(
        &self,
        state: &Arc<TempDir>,
        work: impl AsyncFnOnce(Fixture<Processes>) -> T,
    ) -> T {
        let machine = tokio::runtime::Runtime::new().unwrap();
        machine.block_on(async { work(self.fixture(state).await).await })
    }

    /// Ends all containers, and removes the networks.
    fn sweep(&self, state: &TempDir) {
        let machine = tokio::runtime::Runtime::new().unwrap();
        let swept = machine.block_on(sweep(state.path(), Duration::ZERO));
        assert!(swept.is_ok(), "{}: {swept:?}", self.name);
    }

    /// Returns the configuration of a Pod with this address.
    fn sandbox(&self, host: u8) -> SandboxConfig {
        SandboxConfig {
            ip: self.pod(host),
            ..sandbox()
        }
    }
}

impl Drop for Bridge {
    /// A test that fails leaves its namespaces.
    fn drop(&mut self) {
        for name in names().filter(|name| name.contains(&uid())) {
            ip(&format!("netns delete {name}"));
        }
        ip(&format!("link delete {}", self.name));
    }
}

fn ip(args: &str) {
    let output = Command::new("ip").args(args.split(' ')).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {args}: {error}");
}

fn state() -> Arc<TempDir> {
    Arc::new(tempfile::tempdir().unwrap())
}

fn names() -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap())
}

/// Returns the number of namespaces of a Pod.
fn namespaces(uid: &str) -> usize {
    names().filter(|name| name.ends_with(uid)).count()
}

fn has_table(state: &Path) -> bool {
    let name = std::fs::read_to_string(state.join("network.json")).unwrap_or_default();
    let name = name.trim_matches('"');
    let tables = Command::new("nft")
        .args(["list", "tables", "ip"])
        .output()
        .unwrap();
    let tables = String::from_utf8_lossy(&tables.stdout).into_owned();
    !name.is_empty() && tables.lines().any(|line| line.ends_with(name))
}

/// Connects once something listens there, and returns what it sends.
async fn answer(at: (Ipv4Addr, u16)) -> String {
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        let dialled = TcpStream::connect_timeout(&SocketAddr::from(at), PATIENCE);
        if let Ok(mut stream) = dialled {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            return answer;
        }
        assert!(std::time::Instant::now() < end, "{at:?}: {dialled:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// A server at port 80 of all addresses that tells the name of its host.
const SERVER: [&str; 7] = ["busybox", "nc", "-ll", "-p", "80", "-e", "hostname"];

#[test]
fn two_pods_listen_on_the_same_port_and_have_names_of_their_own() {
    let Some(bridge) = Bridge::new() else { return };
    let state = state();
    bridge.with_agent(&state, async |fixture| {
        let other = SandboxConfig {
            name: "other".into(),
            uid: format!("{}-2", uid()),
            ..bridge.sandbox(3)
        };
        fixture
            .runtime
            .run_sandbox(bridge.sandbox(2))
            .await
            .unwrap();
        fixture.runtime.run_sandbox(other.clone()).await.unwrap();
        let first = container(0, &SERVER);
        let mut second = first.clone();
        second.id.uid.clone_from(&other.uid);
        for config in [first, second] {
            fixture.runtime.start(config).await.unwrap();
        }
        assert_eq!(answer((bridge.pod(2), 80)).await, "web\n");
        assert_eq!(answer((bridge.pod(3), 80)).await, "other\n");
        let (name, ..) = fixture.run(&["hostname"], ALL_OUTPUT, &[]).await;
        assert_eq!(name, "web\n", "of a command beside the container");
        let (addresses, ..) = fixture
            .run(&["ip", "-4", "-o", "address"], ALL_OUTPUT, &[])
            .await;
        assert!(
            addresses.contains(&bridge.pod(2).to_string()),
            "{addresses}"
        );
    });
    bridge.sweep(&state);
    assert_eq!(namespaces(&uid()) + namespaces(&format!("{}-2", uid())), 0);
    assert!(!has_table(state.path()));
}

#[test]
fn a_port_of_the_loopback_is_reached_there_alone() {
    let Some(bridge) = Bridge::new() else { return };
    let state = state();
    bridge.with_agent(&state, async |fixture| {
        fixture
            .runtime
            .run_sandbox(bridge.sandbox(2))
            .await
            .unwrap();
        let local = ["busybox", "httpd", "-f", "-p", "127.0.0.1:80"];
        fixture.runtime.start(container(0, &local)).await.unwrap();
        let end = std::time::Instant::now() + PATIENCE;
        while fixture.runtime.connect_loopback(&uid(), 80).await.is_err() {
            assert!(std::time::Instant::now() < end);
            sleep(Duration::from_millis(20)).await;
        }
        let refused = fixture.runtime.connect(&uid(), 80).await.err().unwrap();
        assert!(
            refused.to_string().ends_with("connection refused"),
            "{refused}"
        );
        fixture.runtime.stop(&id(0), Duration::ZERO).await.unwrap();
        fixture.exited(0).await;
        fixture.runtime.remove_sandbox(&uid()).await.unwrap();
        assert_eq!(namespaces(&uid()), 0);
    });
    bridge.sweep(&state);
}

#[test]
fn a_host_port_leads_to_the_pod_also_after_a_restart_of_the_agent_and_until_the_pod_goes() {
    let Some(bridge) = Bridge::new() else { return };
    let (state, at) = (state(), (bridge.node(), 8080));
    bridge.with_agent(&state, async |fixture| {
        let port = |ip, protocol: &str, port| HostPort {
            ip,
            protocol: protocol.into(),
            port,
            container_port: 80,
        };
        let config = SandboxConfig {
            host_ports: vec![port(None, "TCP", 8080), port(None, "UDP", 8080)],
            ..bridge.sandbox(2)
        };
        fixture.runtime.run_sandbox(config).await.unwrap();
        fixture.runtime.start(container(0, &SERVER)).await.unwrap();
        assert_eq!(answer(at).await, "web\n");
    });
    bridge.with_agent(&state, async |fixture| {
        assert!(fixture.runtime.sandboxes(&pod())[0].ready);
        assert_eq!(answer(at).await, "web\n");
        fixture.runtime.stop(&id(0), Duration::ZERO).await.unwrap();
        fixture.exited(0).await;
        fixture.runtime.remove_sandbox(&uid()).await.unwrap();
        let gone = TcpStream::connect_timeout(&SocketAddr::from(at), PATIENCE);
        assert_eq!(
            gone.unwrap_err().kind(),
            std::io::ErrorKind::ConnectionRefused
        );
    });
    bridge.sweep(&state);
}

/// A Pod that has lost its network, as by a restart of the machine, gets a new sandbox.
#[test]
fn a_pod_without_its_namespace_is_lost_and_one_with_the_network_of_its_node_has_none() {
    let Some(bridge) = Bridge::new() else { return };
    let state = state();
    bridge.with_agent(&state, async |fixture| {
        let shared = SandboxConfig {
            uid: format!("{}-2", uid()),
            host_network: true,
            ..bridge.sandbox(3)
        };
        fixture
            .runtime
            .run_sandbox(bridge.sandbox(2))
            .await
            .unwrap();
        fixture.runtime.run_sandbox(shared.clone()).await.unwrap();
        assert_eq!((namespaces(&uid()), namespaces(&shared.uid)), (1, 0));
    });
    let name = format!("{}-{}", name_of(state.path()), uid());
    ip(&format!("netns delete {name}"));
    bridge.with_agent(&state, async |fixture| {
        let sandboxes = fixture.runtime.sandboxes(&pod());
        let mut ready: Vec<_> = sandboxes
            .iter()
            .map(|one| (one.config.host_network, one.ready))
            .collect();
        ready.sort_unstable();
        assert_eq!(ready, [(false, false), (true, true)]);
        fixture
            .runtime
            .run_sandbox(bridge.sandbox(2))
            .await
            .unwrap();
        fixture
            .runtime
            .start(container(0, &["cat", "/etc/hosts"]))
            .await
            .unwrap();
        fixture.exited(0).await;
        let hosts = fixture.log(0, LogOptions::default()).await;
        assert!(
            hosts.starts_with("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"),
            "{hosts}"
        );
    });
    bridge.sweep(&state);
    assert_eq!(namespaces(&uid()), 0);
}

fn name_of(state: &Path) -> String {
    let name = std::fs::read_to_string(state.join("network.json")).unwrap();
    name.trim_matches('"').to_owned()
}
