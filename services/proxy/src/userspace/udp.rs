//! Flows of UDP: the datagrams of a client to a front, which one endpoint gets and answers.
//!
//! Each flow has a socket of its own, whose answers go back to the client. A flow ends when it was idle for the time of
//! the setting, when the table is full and it was idle for longest, at once when its endpoint is no longer one of the
//! client's, and when the endpoint says that nothing listens. A datagram that cannot be sent on is dropped, as in a
//! network.

use std::cell::RefCell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::metrics::{Metrics, Open, Reason};
use super::route::Route;
use super::table::Table;
use super::tcp::is_local;
use super::{ATTEMPTS, Shared};
use crate::Protocol;

/// The largest datagram.
const DATAGRAM: usize = 65_535;

thread_local! {
    /// One buffer for all sockets of a thread: a datagram is sent on before anything else runs.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; DATAGRAM]);
}

/// Forwards the datagrams of a front until it is dropped.
pub async fn serve(front: UdpSocket, mut route: watch::Receiver<Arc<Route>>, shared: Arc<Shared>) {
    let mut flows = Flows {
        front: Arc::new(front),
        flows: Table::new(shared.limits.flows),
        shared,
    };
    loop {
        let front = Arc::clone(&flows.front);
        let expiry = flows.expiry();
        tokio::select! {
            changed = route.changed() => match changed {
                Ok(()) => flows.reroute(&Arc::clone(&route.borrow_and_update())),
                Err(_) => return,
            },
            ready = front.readable() => match ready {
                Ok(()) => flows.forward(&Arc::clone(&route.borrow())),
                Err(error) => return debug!(%error, "a front has ended"),
            },
            () = sleep_until(expiry) => flows.expire(Instant::now()),
        }
    }
}

/// The flows of a front.
struct Flows {
    front: Arc<UdpSocket>,
    flows: Table<SocketAddrV4, Flow>,
    shared: Arc<Shared>,
}

struct Flow {
    client: Ipv4Addr,
    endpoint: SocketAddrV4,
    socket: Arc<UdpSocket>,
    /// Whether the endpoint has answered since the flow was last looked at.
    answered: Arc<AtomicBool>,
    answers: JoinHandle<()>,
    _open: Open,
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.answers.abort();
    }
}

impl Flows {
    /// Forwards one datagram, if there is one.
    fn forward(&mut self, route: &Route) {
        BUFFER.with_borrow_mut(|buffer| {
            if let Ok((length, SocketAddr::V4(client))) = self.front.try_recv_from(buffer) {
                self.send(client, buffer.get(..length).unwrap_or_default(), route);
            }
        });
    }

    fn send(&mut self, client: SocketAddrV4, datagram: &[u8], route: &Route) {
        let now = Instant::now();
        let known = self.flows.peek(&client);
        if known.is_none_or(|(flow, _)| flow.answers.is_finished()) {
            match self.begin(client, route, now) {
                Ok(flow) => drop(self.flows.insert(client, flow, now)),
                Err(reason) => return self.shared.udp.refused(reason),
            }
        }
        self.flows.touch(&client, now);
        let flow = self.flows.peek(&client);
        // Not by the runtime, which knows only later that a new socket can be written to.
        let sent = flow.map(|(flow, _)| SockRef::from(&*flow.socket).send(datagram));
        match sent {
            Some(Ok(count)) => self.shared.udp.sent.inc_by(as_u64(count)),
            Some(Err(error)) => {
                debug!(%error, "a datagram is dropped");
                if error.kind() == io::ErrorKind::ConnectionRefused {
                    self.flows.remove(&client);
                }
            }
            None => {}
        }
    }

    fn begin(&self, client: SocketAddrV4, route: &Route, now: Instant) -> Result<Flow, Reason> {
        let target = route.target(*client.ip()).ok_or(Reason::Policy)?;
        let pool = target.pool(*client.ip(), is_local);
        let (pool, mut tried) = (pool.map_err(|_| Reason::Policy)?, Vec::new());
        while tried.len() < ATTEMPTS {
            let affinity = target.plan.affinity;
            let chosen = target
                .balancer
                .choose(pool, &tried, *client.ip(), affinity, now);
            let Some(endpoint) = chosen else { break };
            let connected = match self.shared.is_front(Protocol::Udp, endpoint) {
                true => Err(io::ErrorKind::AddrNotAvailable.into()),
                false => connect(endpoint),
            };
            match connected {
                Ok(socket) => return Ok(self.flow(client, endpoint, Arc::new(socket))),
                Err(error) => {
                    self.shared.udp.failures.inc();
                    debug!(%endpoint, %error, "no flow to an endpoint");
                    tried.push(endpoint);
                }
            }
        }
        Err(Reason::Endpoints)
    }

    fn flow(&self, client: SocketAddrV4, endpoint: SocketAddrV4, socket: Arc<UdpSocket>) -> Flow {
        let answered = Arc::<AtomicBool>::default();
        let answers = Answers {
            front: Arc::downgrade(&self.front),
            client,
            socket: Arc::clone(&socket),
            answered: Arc::clone(&answered),
            metrics: self.shared.udp.clone(),
        };
        Flow {
            client: *client.ip(),
            endpoint,
            socket,
            answered,
            answers: tokio::spawn(answers.run()),
            _open: self.shared.udp.open(),
        }
    }

    /// Ends the flows whose endpoint is none of the client's any more.
    fn reroute(&mut self, route: &Route) {
        self.flows.retain(|flow| {
            let target = route.target(flow.client);
            let pool = target.and_then(|target| target.pool(flow.client, is_local).ok());
            pool.is_some_and(|pool| pool.contains(&flow.endpoint))
        });
    }

    /// Returns when the flow that was not used for longest has been idle for long enough.
    fn expiry(&self) -> Instant {
        let oldest = self.flows.oldest().map(|(_, used)| used);
        oldest.unwrap_or_else(Instant::now) + self.shared.limits.flow_timeout
    }

    fn expire(&mut self, now: Instant) {
        while let Some((client, used)) = self.flows.oldest() {
            if now.duration_since(used) < self.shared.limits.flow_timeout {
                return;
            }
            let client = *client;
            let flow = self.flows.peek(&client);
            let answered =
                flow.is_some_and(|(flow, _)| flow.answered.swap(false, Ordering::Relaxed));
            match answered {
                true => self.flows.touch(&client, now),
                false => drop(self.flows.remove(&client)),
            }
        }
    }
}

fn connect(endpoint: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(endpoint)?;
    UdpSocket::from_std(socket)
}

/// Sends the answers of an endpoint to the client.
struct Answers {
    /// The address is free as soon as the front is closed.
    front: Weak<UdpSocket>,
    client: SocketAddrV4,
    socket: Arc<UdpSocket>,
    answered: Arc<AtomicBool>,
    metrics: Metrics,
}

impl Answers {
    async fn run(self) {
        loop {
            let answer = match self.socket.readable().await {
                Ok(()) => self.answer(),
                Err(error) => Err(error),
            };
            match answer {
                Ok(count) => {
                    self.answered.store(true, Ordering::Relaxed);
                    self.metrics.received.inc_by(as_u64(count));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    self.metrics.failures.inc();
                    return debug!(%error, "a flow ends");
                }
            }
        }
    }

    /// Returns the length of an answer that was sent on.
    fn answer(&self) -> io::Result<usize> {
        BUFFER.with_borrow_mut(|buffer| {
            let length = self.socket.try_recv(buffer)?;
            let datagram = buffer.get(..length).unwrap_or_default();
            let front = self.front.upgrade().ok_or(io::ErrorKind::NotConnected)?;
            if let Err(error) = SockRef::from(&*front).send_to(datagram, &self.client.into()) {
                debug!(%error, "an answer is dropped");
            }
            Ok(length)
        })
    }
}

fn as_u64(count: usize) -> u64 {
    count.try_into().unwrap_or(u64::MAX)
}
