//! Who has what of each node: the last check that a Pod fits, and its address.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;

use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_model::pod::Requests;

/// The address of a Pod that fits on its node, or what there is too little of.
pub type Admission = Result<Ipv4Addr, Shortage>;

/// What a node has too little of for one more Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// `cpu` (in thousandths), `memory` (in bytes) or `pods`.
    pub resource: &'static str,
    /// What the Pod asks for.
    pub requested: i64,
    /// What others have.
    pub used: i64,
    /// What there is.
    pub capacity: i64,
}

/// What a node has to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// CPU and memory.
    pub requests: Requests,
    /// Pods.
    pub pods: usize,
    /// The network of its Pods: the first address is the node itself, and 253 are for Pods.
    pub network: Ipv4Addr,
}

/// The books of all nodes of this process.
#[derive(Default)]
pub struct Ledger {
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    nodes: HashMap<String, Account>,
    entries: HashMap<Key, Entry>,
}

struct Account {
    room: Room,
    used: Used,
    hosts: BTreeSet<u8>,
}

/// A sum of requests. Each is a client's 64-bit number and may come close to the end of that range; in 128 bits no sum
/// of them overflows, so that what is taken off again is what was added.
#[derive(Clone, Copy, Default)]
struct Used {
    millicpu: i128,
    memory: i128,
}

impl Used {
    fn add(&mut self, requests: Requests) {
        self.millicpu = self.millicpu.saturating_add(requests.millicpu.into());
        self.memory = self.memory.saturating_add(requests.memory.into());
    }

    fn take_off(&mut self, requests: Requests) {
        self.millicpu = self.millicpu.saturating_sub(requests.millicpu.into());
        self.memory = self.memory.saturating_sub(requests.memory.into());
    }
}

struct Entry {
    uid: String,
    node: String,
    requests: Requests,
    host: u8,
}

impl Ledger {
    /// The books of these nodes, with nobody on them.
    pub fn new(nodes: impl IntoIterator<Item = (String, Room)>) -> Self {
        let account = |room| Account {
            room,
            used: Used::default(),
            hosts: BTreeSet::new(),
        };
        let nodes = nodes
            .into_iter()
            .map(|(name, room)| (name, account(room)))
            .collect();
        let entries = HashMap::new();
        Self {
            books: Mutex::new(Books { nodes, entries }),
        }
    }

    /// Finds room for a Pod, or the room that it has.
    pub fn admit(&self, pod: &Key, uid: &str, node: &str, requests: Requests) -> Admission {
        let mut books = self.books.lock();
        if let Some(known) = books.known(pod, uid) {
            return Ok(known);
        }
        books.drop_entry(pod);
        let fits = books
            .nodes
            .get(node)
            .map_or(Ok(()), |account| account.check(requests));
        fits?;
        Ok(books.enter(pod, uid, node, requests, None))
    }

    /// Enters a Pod that was admitted in an earlier life, whether or not it still fits.
    pub fn restore(
        &self,
        pod: &Key,
        uid: &str,
        node: &str,
        requests: Requests,
        ip: Option<Ipv4Addr>,
    ) {
        let mut books = self.books.lock();
        if books.known(pod, uid).is_none() {
            books.enter(pod, uid, node, requests, ip);
        }
    }

    /// Takes a Pod off the books.
    pub fn release(&self, pod: &Key) {
        self.books.lock().drop_entry(pod);
    }
}

impl Books {
    fn known(&self, pod: &Key, uid: &str) -> Option<Ipv4Addr> {
        let entry = self.entries.get(pod).filter(|entry| entry.uid == uid)?;
        Some(self.nodes.get(&entry.node)?.address(entry.host))
    }

    fn enter(
        &mut self,
        pod: &Key,
        uid: &str,
        node: &str,
        requests: Requests,
        ip: Option<Ipv4Addr>,
    ) -> Ipv4Addr {
        let Some(account) = self.nodes.get_mut(node) else {
            return Ipv4Addr::UNSPECIFIED;
        };
        let host = account.take(requests, ip);
        let (uid, node) = (uid.to_owned(), node.to_owned());
        let address = account.address(host);
        self.entries.insert(
            pod.clone(),
            Entry {
                uid,
                node,
                requests,
                host,
            },
        );
        address
    }

    fn drop_entry(&mut self, pod: &Key) {
        let Some(entry) = self.entries.remove(pod) else {
            return;
        };
        if let Some(account) = self.nodes.get_mut(&entry.node) {
            account.used.take_off(entry.requests);
            account.hosts.remove(&entry.host);
        }
    }
}

impl Account {
    fn check(&self, requests: Requests) -> Result<(), Shortage> {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let (room, used) = (&self.room, &self.used);
        [
            (
                "cpu",
                requests.millicpu,
                used.millicpu,
                room.requests.millicpu,
            ),
            ("memory", requests.memory, used.memory, room.requests.memory),
            ("pods", 1, count(self.hosts.len()).into(), count(room.pods)),
        ]
        .into_iter()
        .find(|(_, requested, used, capacity)| {
            *requested > 0 && used.saturating_add((*requested).into()) > (*capacity).into()
        })
        .map_or(Ok(()), |(resource, requested, used, capacity)| {
            Err(Shortage {
                resource,
                requested,
                used: i64::try_from(used).unwrap_or(i64::MAX),
                capacity,
            })
        })
    }

    fn take(&mut self, requests: Requests, ip: Option<Ipv4Addr>) -> u8 {
        self.used.add(requests);
        let had = ip
            .map(|ip| ip.octets()[3])
            .filter(|host| !self.hosts.contains(host));
        let free = || (2..=254).find(|host| !self.hosts.contains(host));
        // 255 is shared by those beyond the 253rd, whom only `restore` lets in.
        let host = had.or_else(free).unwrap_or(u8::MAX);
        self.hosts.insert(host);
        host
    }

    fn address(&self, host: u8) -> Ipv4Addr {
        let [a, b, c, _] = self.room.network.octets();
        Ipv4Addr::new(a, b, c, host)
    }
}

impl Shortage {
    /// The reason of a Pod that was rejected for it.
    pub fn reason(&self) -> String {
        format!("OutOf{}", self.resource)
    }

    /// For people.
    pub fn message(&self) -> String {
        let Self {
            resource,
            requested,
            used,
            capacity,
        } = self;
        format!(
            "Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        let room = Room {
            requests: Requests {
                millicpu: 1000,
                memory: 1000,
            },
            pods: 3,
            network: Ipv4Addr::new(10, 1, 2, 0),
        };
        Ledger::new([("node".to_owned(), room)])
    }

    fn admit(ledger: &Ledger, name: &str, millicpu: i64) -> Result<[u8; 4], String> {
        let requests = Requests {
            millicpu,
            memory: 1,
        };
        let admission = ledger.admit(&Key::new("a", name), name, "node", requests);
        admission
            .map(|ip| ip.octets())
            .map_err(|shortage| shortage.reason())
    }

    /// Checks N8.
    #[test]
    fn a_pod_that_does_not_fit_is_refused_until_another_leaves() {
        let ledger = ledger();
        assert_eq!(admit(&ledger, "first", 600), Ok([10, 1, 2, 2]));
        assert_eq!(admit(&ledger, "second", 600), Err("OutOfcpu".into()));
        assert_eq!(admit(&ledger, "third", 400), Ok([10, 1, 2, 3]));
        ledger.release(&Key::new("a", "first"));
        assert_eq!(admit(&ledger, "second", 600), Ok([10, 1, 2, 2]));
    }

    /// Checks N8.
    #[test]
    fn there_are_only_so_many_pods() {
        let ledger = ledger();
        let admitted = ["a", "b", "c", "d"].map(|name| admit(&ledger, name, 0).is_ok());
        assert_eq!(admitted, [true, true, true, false]);
    }

    #[test]
    fn asking_again_gives_the_same_address() {
        let ledger = ledger();
        assert_eq!(admit(&ledger, "first", 600), admit(&ledger, "first", 600));
    }

    /// Checks F13.
    #[test]
    fn requests_of_any_size_neither_overflow_nor_leave_anything_behind() {
        let ledger = ledger();
        let most = Requests {
            millicpu: i64::MAX,
            memory: i64::MAX,
        };
        for name in ["a", "b"] {
            ledger.restore(&Key::new("a", name), name, "node", most, None);
        }
        assert_eq!(admit(&ledger, "new", 1), Err("OutOfcpu".into()));
        for name in ["a", "b"] {
            ledger.release(&Key::new("a", name));
        }
        assert!(admit(&ledger, "new", 1000).is_ok());
        assert!(admit(&ledger, "newer", i64::MAX).is_err());
    }

    #[test]
    fn who_was_there_before_keeps_the_address_even_where_there_is_no_room() {
        let ledger = ledger();
        let ip = Ipv4Addr::new(10, 1, 2, 77);
        ledger.restore(
            &Key::new("a", "old"),
            "old",
            "node",
            Requests {
                millicpu: 5000,
                memory: 0,
            },
            Some(ip),
        );
        assert_eq!(admit(&ledger, "old", 5000), Ok(ip.octets()));
        assert_eq!(admit(&ledger, "new", 1), Err("OutOfcpu".into()));
    }
}
