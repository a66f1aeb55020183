//! The chains and maps of the table that all Services share, and the transactions. Pure.
//!
//! ```text
//! prerouting, output ─▶ services ─▶ @services, @node-ports ─▶ [balancer/… ─▶] [external/… ─▶] cluster/… or local/…
//! postrouting        ─▶ masquerade what is marked, and endpoints that reach themselves
//! input, forward, output ─▶ refusals ─▶ @refusals, @node-port-refusals, the Service range ─▶ refuse
//! ```
//! `cluster/…` and `local/…` choose an endpoint at random. With affinity they first look whether the client is in the
//! set of an endpoint, `affinity/…`, which the endpoint's chain, `endpoint/…`, adds it to. What they choose from are
//! the elements of a block of numbers ([`Blocks`]) in one of the maps of the whole table.

use setpoint_model::Cidr;

use super::blocks::Blocks;
use super::rule::{Field, Rule, Statement, Verdict};
use super::set::{Element, Key, SetKind};
use super::sites;
use super::transaction::{Command, Hook, Transaction};
use crate::Place;
use crate::ledger::Delta;
use crate::service::Protocol;

/// The parameters of the table that all Services share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The name of the table.
    pub table: String,
    /// The addresses of Services.
    pub service_range: Vec<Cidr>,
    /// Whether the source address of all connections to the Service range is to be that of the machine.
    pub masquerade_all: bool,
    /// The addresses of Pods whose source address is to be that of the machine when they connect to others; none if
    /// something else does that.
    pub pod_range: Vec<Cidr>,
}

impl Base {
    /// Returns the transaction that replaces the table by one with the Services of a delta from nothing. `blocks` must
    /// be empty.
    pub fn whole(&self, place: &Place, delta: &Delta, blocks: &mut Blocks) -> Transaction {
        let mut transaction = Self::remove(&self.table);
        transaction.push(Command::AddTable);
        for (name, kind) in SETS {
            transaction.push(Command::AddSet(name.to_owned(), kind));
        }
        for (name, hook) in HOOKS {
            transaction.push(Command::AddChain(name.to_owned(), Some(hook)));
        }
        for name in ["services", "refusals", "refuse"] {
            transaction.chain(name);
        }
        for (chain, rule) in rules() {
            transaction.rule(chain, rule);
        }
        if self.masquerade_all {
            let range = within(&[Field::Destination], "service-range");
            transaction.rule("services", [range, Statement::Mark]);
        }
        if !self.pod_range.is_empty() {
            masquerade_pods(&mut transaction, &self.pod_range);
        }
        let sites = sites::script(&mut transaction, &place.sites);
        for rule in sites.into_iter().chain(lookups()) {
            transaction.rule("services", rule);
        }
        let ranges = self.service_range.iter().copied().map(Key::Range);
        transaction.elements("service-range", ranges.map(Element::of).collect());
        let nodes = place.addresses.iter().copied().map(Key::Range);
        transaction.elements("node-addresses", nodes.map(Element::of).collect());
        transaction.delta(delta, blocks);
        transaction
    }

    /// Returns the transaction that makes a delta.
    pub fn partial(&self, delta: &Delta, blocks: &mut Blocks) -> Transaction {
        let mut transaction = Transaction::new(&self.table);
        transaction.delta(delta, blocks);
        transaction
    }

    /// Returns a transaction that changes nothing, and fails unless the table is there.
    pub fn probe(&self) -> Transaction {
        let mut transaction = Transaction::new(&self.table);
        transaction.chain("services");
        transaction
    }

    /// Returns the transaction that removes the table if it is there.
    pub fn remove(table: &str) -> Transaction {
        let mut transaction = Transaction::new(table);
        transaction.push(Command::AddTable);
        transaction.push(Command::DeleteTable);
        transaction
    }
}

/// The fields by which an address of a Service is found.
pub const FRONT: &[Field] = &[Field::Destination, Field::Protocol, Field::Port];
/// The fields by which a node port is found.
pub const PORT: &[Field] = &[Field::Protocol, Field::Port];

/// The sets and the maps.
const SETS: [(&str, SetKind); 7] = [
    ("services", SetKind::FrontVerdicts),
    ("node-ports", SetKind::PortVerdicts),
    ("refusals", SetKind::FrontVerdicts),
    ("node-port-refusals", SetKind::PortVerdicts),
    ("node-addresses", SetKind::Ranges),
    ("service-range", SetKind::Ranges),
    ("hairpin", SetKind::Pairs),
];

/// The chains with hooks. The numbers are those of the kernel (`NF_INET_…`).
const HOOKS: [(&str, Hook); 6] = [
    ("prerouting", hook("nat", ("prerouting", 0), -100)),
    ("nat-output", hook("nat", ("output", 3), -100)),
    ("postrouting", hook("nat", ("postrouting", 4), 100)),
    ("input", hook("filter", ("input", 1), 0)),
    ("forward", hook("filter", ("forward", 2), 0)),
    ("output", hook("filter", ("output", 3), 0)),
];

const fn hook(kind: &'static str, hook: (&'static str, u32), priority: i32) -> Hook {
    Hook {
        kind,
        hook,
        priority,
    }
}

/// Returns the rules of the chains that do not change.
fn rules() -> Vec<(&'static str, Rule)> {
    let jump = |chain: &str| vec![Statement::Verdict(Verdict::Jump(chain.to_owned()))];
    let refuse = || Statement::Verdict(Verdict::Goto("refuse".to_owned()));
    let pair = &[Field::Source, Field::Destination];
    vec![
        ("prerouting", jump("services")),
        ("nat-output", jump("services")),
        (
            "postrouting",
            vec![Statement::Marked, Statement::Unmark, Statement::Masquerade],
        ),
        (
            "postrouting",
            vec![
                Statement::Translated,
                within(pair, "hairpin"),
                Statement::Masquerade,
            ],
        ),
        ("input", jump("refusals")),
        ("forward", jump("refusals")),
        ("output", jump("refusals")),
        ("refusals", vec![vmap(FRONT, "refusals")]),
        (
            "refusals",
            vec![
                within(&[Field::Destination], "node-addresses"),
                vmap(PORT, "node-port-refusals"),
            ],
        ),
        // Nothing to an address of the range leaves the machine: those with a Service have become those of endpoints.
        (
            "refusals",
            vec![within(&[Field::Destination], "service-range"), refuse()],
        ),
        (
            "refuse",
            vec![Statement::Protocol(Protocol::Tcp), Statement::Reset],
        ),
        ("refuse", vec![Statement::Reject]),
    ]
}

/// Returns the rules by which Services are found.
fn lookups() -> [Rule; 2] {
    [
        vec![vmap(FRONT, "services")],
        vec![
            within(&[Field::Destination], "node-addresses"),
            vmap(PORT, "node-ports"),
        ],
    ]
}

/// Lets what Pods send beyond these ranges have the source address of the machine: nothing there knows a way back.
fn masquerade_pods(transaction: &mut Transaction, ranges: &[Cidr]) {
    let name = "pod-range";
    transaction.push(Command::AddSet(name.to_owned(), SetKind::Ranges));
    let elements = ranges.iter().copied().map(Key::Range).map(Element::of);
    transaction.elements(name, elements.collect());
    let rule = [
        within(&[Field::Source], name),
        Statement::NotIn(&[Field::Destination], name.to_owned()),
        Statement::Masquerade,
    ];
    transaction.rule("postrouting", rule);
}

fn within(fields: &'static [Field], set: &str) -> Statement {
    Statement::In(fields, set.to_owned())
}

fn vmap(fields: &'static [Field], map: &str) -> Statement {
    Statement::Vmap(fields, map.to_owned())
}
