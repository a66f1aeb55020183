//! Notices upstream servers that lead back to this process.

use std::sync::atomic::{AtomicBool, Ordering};

use hickory_proto::op::Query;
use hickory_proto::rr::{Name, RecordType};
use tracing::error;

/// The state of each server.
#[derive(Debug)]
pub struct Loops {
    /// The random part of the probes' names.
    secret: u64,
    looping: Vec<AtomicBool>,
}

impl Loops {
    /// Watches this number of servers.
    pub fn new(servers: usize) -> Self {
        Self {
            secret: rand::random(),
            looping: (0..servers).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// Returns whether a server leads back here.
    pub fn is_looping(&self, server: usize) -> bool {
        self.looping[server].load(Ordering::Relaxed)
    }

    /// Returns the question for a server whose arrival here shows a loop. As CoreDNS' it is for a type that nobody
    /// uses, in a domain of digits that does not exist.
    pub fn probe(&self, server: usize) -> Option<Query> {
        let labels = [format!("{server}-{:016x}", self.secret), self.domain()];
        let name = Name::from_labels(labels.iter().map(|label| label.as_bytes()));
        Some(Query::query(name.ok()?, RecordType::HINFO))
    }

    /// Checks a question that arrived. Returns whether it is one of the probes.
    pub fn arrived(&self, query: &Query) -> bool {
        if query.query_type() != RecordType::HINFO {
            return false;
        }
        let probes =
            (0..self.looping.len()).filter_map(|server| Some((server, self.probe(server)?)));
        for (server, probe) in probes {
            if probe.name() == query.name() {
                self.looping[server].store(true, Ordering::Relaxed);
                error!(
                    server,
                    "an upstream server leads back here: it is not asked any more"
                );
                return true;
            }
        }
        false
    }

    fn domain(&self) -> String {
        self.secret.to_string()
    }
}
