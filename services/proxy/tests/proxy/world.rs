//! The networks in which the contract is tested, and the back end of each.
//!
//! nftables has a machine with Pods in namespaces of their own. User space has one network whose loopback has all
//! addresses: a namespace of the test, or without root that of the machine, with addresses that differ between tests.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{io, process};

use setpoint_model::Key;
use setpoint_proxy::nftables::{Base, Nftables};
use setpoint_proxy::userspace::{Limits, Sockets, Userspace};
use setpoint_proxy::{Backend, Place};
use std::sync::mpsc;

use crate::machine::{Machine, Namespace, is_allowed};
use crate::objects::here;

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A process of the machine.
    Machine,
    /// The Pod with this number.
    Pod(u8),
    /// A client of another machine, or the nearest to it.
    Client,
}

/// A network with Pods, which serve at port 8080 by their names `pod1` and so on.
pub trait World: Sized {
    /// The back end.
    type Backend: Backend<Error: std::fmt::Debug> + 'static;

    /// Returns a network; `None` if this process may not make it, which is said.
    fn new(pods: u8) -> Option<Self>;
    /// Returns a back end, which is to be used in a runtime whose threads are prepared by [`World::mover`].
    fn backend(&self) -> Self::Backend;
    /// Returns a function that moves the thread that calls it to where the proxy is.
    fn mover(&self) -> Box<dyn Fn() + Send + Sync>;
    fn place(&self) -> Arc<Place>;
    /// Returns the address of a Service.
    fn service(&self, number: u8) -> Ipv4Addr;
    fn pod(&self, number: u8) -> Ipv4Addr;
    fn node(&self) -> Ipv4Addr;
    fn client(&self) -> Ipv4Addr;
    /// Connects, and returns the answer.
    fn connect(&self, from: Source, to: &str) -> io::Result<String>;
    /// Returns a socket of UDP that sends to an address.
    fn udp(&self, from: Source, to: &str) -> UdpSocket;
    /// Returns whether flows of UDP can end with their endpoint; says so if not.
    fn ends_flows(&self) -> bool {
        true
    }
}

impl World for Machine {
    type Backend = Nftables;

    fn new(pods: u8) -> Option<Self> {
        is_allowed().then(|| Self::new(pods))
    }

    fn backend(&self) -> Nftables {
        let base = Base {
            table: "setpoint-test".to_owned(),
            service_range: vec!["10.96.0.0/16".parse().unwrap()],
            masquerade_all: false,
            pod_range: Vec::new(),
        };
        Nftables::new(base, self.tools())
    }

    /// The socket and the programs are of the namespace.
    fn mover(&self) -> Box<dyn Fn() + Send + Sync> {
        Box::new(|| ())
    }

    fn place(&self) -> Arc<Place> {
        here()
    }

    fn service(&self, number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 96, 0, number)
    }

    fn pod(&self, number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 1, number, 2)
    }

    fn node(&self) -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 2, 1)
    }

    fn client(&self) -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 2, 2)
    }

    fn connect(&self, from: Source, to: &str) -> io::Result<String> {
        self.at(from).connect(to)
    }

    fn udp(&self, from: Source, to: &str) -> UdpSocket {
        self.at(from).udp(to)
    }

    fn ends_flows(&self) -> bool {
        let ends = !self.machine.output("conntrack --version").is_empty();
        if !ends {
            eprintln!("SKIPPED: the end of flows was NOT tested: that takes conntrack");
        }
        ends
    }
}

impl Machine {
    fn at(&self, from: Source) -> &Namespace {
        match from {
            Source::Machine => &self.machine,
            Source::Pod(number) => &self.pods[usize::from(number) - 1],
            Source::Client => &self.client,
        }
    }
}

/// A network with everything on its loopback.
pub struct Loopback {
    pub network: Namespace,
    /// The first two octets after 127.
    net: (u8, u8),
    reports: mpsc::Sender<(Key, String)>,
    /// The reports of back ends.
    pub reported: mpsc::Receiver<(Key, String)>,
    /// The limits of back ends.
    pub limits: Limits,
}

impl World for Loopback {
    type Backend = Userspace;

    fn new(pods: u8) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let unique = (process::id() * 16 + number).to_le_bytes();
        let (reports, reported) = mpsc::channel();
        let world = Self {
            network: match is_allowed() {
                true => Namespace::new("l"),
                false => Namespace::own(),
            },
            net: (128 + unique[1] % 100, unique[0]),
            reports,
            reported,
            limits: Limits::default(),
        };
        for number in 1..=pods {
            let at = format!("{}:8080", world.pod(number));
            world.network.serve(&format!("pod{number}"), &at);
        }
        Some(world)
    }

    fn backend(&self) -> Userspace {
        let reports = parking_lot::Mutex::new(self.reports.clone());
        let report = move |service: &Key, message| {
            let _ = reports.lock().send((service.clone(), message));
        };
        Userspace::new(Sockets::Own, self.limits.clone(), Box::new(report))
    }

    fn mover(&self) -> Box<dyn Fn() + Send + Sync> {
        Box::new(self.network.mover())
    }

    fn place(&self) -> Arc<Place> {
        let mut place = (*here()).clone();
        place.addresses = [setpoint_model::Cidr::host(self.node())].into();
        Arc::new(place)
    }

    fn service(&self, number: u8) -> Ipv4Addr {
        self.address(number)
    }

    fn pod(&self, number: u8) -> Ipv4Addr {
        self.address(100 + number)
    }

    fn node(&self) -> Ipv4Addr {
        self.address(200)
    }

    fn client(&self) -> Ipv4Addr {
        self.address(201)
    }

    fn connect(&self, from: Source, to: &str) -> io::Result<String> {
        self.network.connect_from(self.from(from), to)
    }

    fn udp(&self, from: Source, to: &str) -> UdpSocket {
        self.network.udp_from(self.from(from), to)
    }
}

impl Loopback {
    fn address(&self, number: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, self.net.0, self.net.1, number)
    }

    fn from(&self, from: Source) -> Ipv4Addr {
        match from {
            Source::Machine => Ipv4Addr::LOCALHOST,
            Source::Pod(number) => self.pod(number),
            Source::Client => self.client(),
        }
    }
}
