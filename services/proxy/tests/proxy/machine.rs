//! A machine with Pods and a client of another one, as network namespaces.
//!
//! ```text
//! client 192.0.2.2 ── 192.0.2.1 machine ── 10.1.<n>.1, 10.1.<n>.2 Pods
//! ```

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use std::{io, process};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use setpoint_proxy::nftables::{Socket as Netlink, Tools};
use socket2::{Domain, Socket, Type};

/// The time that a connection may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Returns whether this process may make network namespaces and tables; says so if not.
pub fn is_allowed() -> bool {
    let status = Command::new("unshare")
        .args(["-n", "nft", "list", "tables"])
        .output();
    let allowed = status.is_ok_and(|output| output.status.success());
    if !allowed {
        eprintln!("SKIPPED: packets through nftables were NOT tested: that takes root, ip and nft");
    }
    allowed
}

fn ip(args: &str) {
    let output = Command::new("ip").args(args.split(' ')).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {args}: {error}");
}

/// A network namespace, which is removed when it is dropped, or the network of this process.
pub struct Namespace {
    name: String,
}

impl Namespace {
    pub fn new(role: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("px{}-{number}-{role}", process::id());
        ip(&format!("netns add {name}"));
        let namespace = Self { name };
        namespace.ip("link set lo up");
        namespace
    }

    /// Returns the network of this process.
    pub fn own() -> Self {
        Self {
            name: String::new(),
        }
    }

    /// Runs `ip` in it.
    pub fn ip(&self, args: &str) {
        ip(&format!("-n {} {args}", self.name));
    }

    fn file(&self) -> String {
        format!("/run/netns/{}", self.name)
    }

    /// Returns a command that runs a program in it.
    pub fn command(&self, program: &str) -> Vec<String> {
        if self.name.is_empty() {
            return vec![program.to_owned()];
        }
        let net = format!("--net={}", self.file());
        vec!["nsenter".to_owned(), net, program.to_owned()]
    }

    /// Runs a program in it, and returns its output.
    pub fn output(&self, line: &str) -> String {
        let mut words = line.split(' ');
        let command = self.command(words.next().unwrap());
        let output = Command::new(&command[0])
            .args(&command[1..])
            .args(words)
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    }

    /// Calls a function in a thread of the namespace. Sockets that it opens stay there.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let move_here = self.mover();
        let work = || {
            move_here();
            work()
        };
        thread::scope(|scope| scope.spawn(work).join().unwrap())
    }

    /// Returns a function that moves the thread that calls it into the namespace.
    pub fn mover(&self) -> impl Fn() + Send + Sync + 'static {
        let file = (!self.name.is_empty()).then(|| File::open(self.file()).unwrap());
        move || {
            if let Some(file) = &file {
                let network = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(file.as_fd(), network).unwrap();
            }
        }
    }

    /// Starts servers of TCP and UDP at a port, which answer `<name> <address of the client>`, until the test ends.
    pub fn serve(&self, name: &str, at: &str) {
        let at: SocketAddrV4 = at.parse().unwrap();
        let (tcp, udp) =
            self.enter(|| (TcpListener::bind(at).unwrap(), UdpSocket::bind(at).unwrap()));
        let (name, same) = (name.to_owned(), name.to_owned());
        thread::spawn(move || {
            for stream in tcp.incoming() {
                let mut stream = stream.unwrap();
                let Ok(peer) = stream.peer_addr() else {
                    continue;
                };
                let _ = write!(stream, "{name} {}", peer.ip());
            }
        });
        thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok((_, peer)) = udp.recv_from(&mut buffer) {
                let _ = udp.send_to(format!("{same} {}", peer.ip()).as_bytes(), peer);
            }
        });
    }

    /// Connects, and returns the answer.
    pub fn connect(&self, to: &str) -> io::Result<String> {
        self.connect_from(Ipv4Addr::UNSPECIFIED, to)
    }

    /// Connects from an address, and returns the answer.
    pub fn connect_from(&self, from: Ipv4Addr, to: &str) -> io::Result<String> {
        let mut stream = self.open(from, to)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Connects from an address.
    pub fn open(&self, from: Ipv4Addr, to: &str) -> io::Result<TcpStream> {
        let to: SocketAddr = to.parse().unwrap();
        self.enter(|| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.bind(&SocketAddrV4::new(from, 0).into())?;
            socket.connect_timeout(&to.into(), PATIENCE)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            Ok(socket.into())
        })
    }

    /// Returns the names of the servers that answer `count` connections.
    pub fn names(&self, to: &str, count: usize) -> std::collections::BTreeSet<String> {
        let answers = (0..count).map(|_| self.connect(to).unwrap());
        answers
            .map(|answer| answer.split(' ').next().unwrap().to_owned())
            .collect()
    }

    /// Returns a socket of UDP that sends to an address.
    pub fn udp(&self, to: &str) -> UdpSocket {
        self.udp_from(Ipv4Addr::UNSPECIFIED, to)
    }

    /// Returns a socket of UDP that sends from an address to one.
    pub fn udp_from(&self, from: Ipv4Addr, to: &str) -> UdpSocket {
        let socket = self.enter(|| UdpSocket::bind((from, 0)).unwrap());
        socket.connect(to).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }
}

/// Sends a datagram, and returns the answer.
pub fn ask(socket: &UdpSocket) -> io::Result<String> {
    let mut buffer = [0; 64];
    socket.send(b"?")?;
    let length = socket.recv(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.name.is_empty() {
            return;
        }
        let _ = Command::new("ip")
            .args(["netns", "del", &self.name])
            .output();
    }
}

/// The machine, its Pods and its client.
pub struct Machine {
    pub machine: Namespace,
    pub pods: Vec<Namespace>,
    pub client: Namespace,
}

impl Machine {
    /// Returns a machine with this number of Pods, each of which serves at port 8080 of 10.1.<n>.2 by its name, `pod1`
    /// and so on.
    pub fn new(pods: u8) -> Self {
        let machine = Namespace::new("m");
        let client = Namespace::new("c");
        link(&machine, &client, 0, "192.0.2", "1", "2");
        // As on other machines, everything else leaves through the router.
        machine.ip("route add default via 192.0.2.2");
        let sysctl = "echo 1 > /proc/sys/net/ipv4/ip_forward";
        let mut enter = machine.command("sh");
        enter.extend(["-c".to_owned(), sysctl.to_owned()]);
        assert!(
            Command::new(&enter[0])
                .args(&enter[1..])
                .status()
                .unwrap()
                .success()
        );
        let pod = |number| {
            let pod = Namespace::new("p");
            link(&machine, &pod, number, &format!("10.1.{number}"), "1", "2");
            pod.serve(&format!("pod{number}"), &format!("10.1.{number}.2:8080"));
            pod
        };
        Self {
            pods: (1..=pods).map(pod).collect(),
            machine,
            client,
        }
    }

    /// Gives the machine another address, which the client reaches.
    pub fn address(&self, ip: &str) {
        self.machine.ip(&format!("addr add {ip}/32 dev veth0"));
    }

    pub fn tools(&self) -> Tools {
        Tools {
            socket: self.machine.enter(|| Netlink::open().unwrap()),
            conntrack: self.machine.command("conntrack"),
            timeout: Duration::from_secs(20),
        }
    }

    /// Returns the number of packets that have left to an address by the default route.
    pub fn left(&self, to: Ipv4Addr) -> usize {
        let counters = self.client.output("nft list table ip seen");
        let line = counters.lines().find(|line| line.contains(&to.to_string()));
        let mut words = line.expect("a counter").split(' ');
        words.find(|word| *word == "packets").unwrap();
        words.next().unwrap().parse().unwrap()
    }

    /// Counts packets to an address at the router.
    pub fn watch(&self, to: Ipv4Addr) {
        let script = format!(
            "add table ip seen; add chain ip seen in {{ type filter hook prerouting priority -300; }}; \
             add rule ip seen in ip daddr {to} counter"
        );
        let mut command = self.client.command("nft");
        command.push(script);
        assert!(
            Command::new(&command[0])
                .args(&command[1..])
                .status()
                .unwrap()
                .success()
        );
    }
}

/// Joins two namespaces. The second one's default route is through the first one.
fn link(first: &Namespace, second: &Namespace, number: u8, net: &str, one: &str, two: &str) {
    let (a, b) = (format!("veth{number}"), "eth0");
    let (peer, pair) = (&second.name, &first.name);
    ip(&format!(
        "-n {pair} link add {a} type veth peer name {b} netns {peer}"
    ));
    first.ip(&format!("addr add {net}.{one}/24 dev {a}"));
    first.ip(&format!("link set {a} up"));
    second.ip(&format!("addr add {net}.{two}/24 dev {b}"));
    second.ip(&format!("link set {b} up"));
    if number > 0 {
        second.ip(&format!("route add default via {net}.{one}"));
    }
}
