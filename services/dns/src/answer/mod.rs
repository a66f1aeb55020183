//! Answers: from a question and the index to records. Pure.
//!
//! The names are those of Kubernetes' specification of DNS-based service discovery, with CoreDNS' answers where that is
//! silent. `<zone>` is the domain of the cluster.
//!
//! | name | records |
//! |---|---|
//! | `<zone>` | SOA, NS |
//! | `dns-version.<zone>` | TXT |
//! | `ns.dns.<zone>` | the addresses of the cluster's DNS |
//! | `<service>.<namespace>.svc.<zone>` | cluster IPs or ready endpoints, SRV of all ports, or CNAME |
//! | `_<port>._<protocol>.<service>.<namespace>.svc.<zone>` | SRV of the port, and the addresses as above |
//! | `<hostname>.<service>.<namespace>.svc.<zone>` | endpoints of this host name, or of the address `1-2-3-4` |
//! | `1-2-3-4.<namespace>.pod.<zone>` | the address itself |
//! | `4.3.2.1.in-addr.arpa` | PTR to the Services with that cluster IP, or to the names of ready endpoints |
//!
//! A name that exists, or has names below it, has an empty answer for other types; other names do not exist (NXDOMAIN).
//! There are no wildcards.

mod autopath;
mod name;
mod pod;
mod reverse;
mod service;
mod zone;

use hickory_proto::op::Query;
use hickory_proto::rr::{Name, Record, RecordType};

use crate::records::Index;
pub use autopath::expand;
use name::Subject;
pub use zone::{PodMode, Zone};

/// The most aliases that are followed within the cluster.
const MAX_ALIASES: usize = 8;

/// The answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Records of the cluster; none if the name has others only.
    Found(Records),
    /// The name does not exist.
    NoName,
    /// An alias of a name outside of the cluster, whose records complete the answer.
    Alias {
        /// The aliases so far.
        records: Records,
        /// The name to look up.
        target: Name,
    },
    /// A name outside of the cluster.
    Elsewhere,
}

/// The records of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// The records that were asked for.
    pub answers: Vec<Record>,
    /// Addresses of the names in these.
    pub additionals: Vec<Record>,
}

impl Records {
    fn push(&mut self, record: Record) {
        self.answers.push(record);
    }
}

impl From<Records> for Answer {
    fn from(records: Records) -> Self {
        Self::Found(records)
    }
}

/// Answers a question of the class IN.
pub fn answer(zone: &Zone, index: &Index, query: &Query) -> Answer {
    let mut aliases = Records::default();
    let mut name = query.name().clone();
    for _ in 0..MAX_ALIASES {
        match one(zone, index, &name, query.query_type()) {
            Answer::Alias { records, target } => {
                aliases.answers.extend(records.answers);
                name = target;
            }
            Answer::Elsewhere if !aliases.answers.is_empty() => {
                return Answer::Alias {
                    records: aliases,
                    target: name,
                };
            }
            answer => return following(aliases, answer),
        }
    }
    // A loop of aliases: what was found, without an address.
    aliases.into()
}

/// Returns the answer for the last name, after the aliases that led there.
fn following(mut aliases: Records, answer: Answer) -> Answer {
    match answer {
        answer if aliases.answers.is_empty() => answer,
        Answer::Found(found) => {
            aliases.answers.extend(found.answers);
            aliases.additionals.extend(found.additionals);
            aliases.into()
        }
        _ => aliases.into(),
    }
}

/// Answers for one name, with at most one alias.
fn one(zone: &Zone, index: &Index, asked: &Name, of: RecordType) -> Answer {
    if !zone.origin.zone_of(asked) {
        return reverse::answer(zone, index, asked, of);
    }
    let lower = asked.to_lowercase();
    let labels: Option<Vec<&str>> = lower
        .iter()
        .map(|label| str::from_utf8(label).ok())
        .collect();
    // A name that is not text is none of ours.
    let Some(labels) = labels else {
        return Answer::NoName;
    };
    let own = labels.len() - usize::from(zone.origin.num_labels());
    match Subject::parse(&labels[..own]) {
        Some(Subject::Apex) => zone.apex(index, asked, of),
        Some(Subject::Version) => zone.version(asked, of),
        Some(Subject::NameServer) => zone.name_server(index, asked, of),
        Some(Subject::Parent) => Records::default().into(),
        Some(Subject::Namespace(namespace)) => match index.has_namespace(namespace) {
            true => Records::default().into(),
            false => Answer::NoName,
        },
        Some(Subject::Service(question)) => service::answer(zone, index, asked, of, &question),
        Some(Subject::Pod { namespace, address }) => {
            pod::answer(zone, index, asked, of, namespace, address)
        }
        None => Answer::NoName,
    }
}
