//! The table of policies as it is programmed, and the transactions that change it. Pure.
//!
//! ```text
//! forward ─▶ egress  ─▶ @egress:  chain of the Pod that connects         ─▶ return, or drop at the end
//!         ─▶ ingress ─▶ @ingress: chain of the Pod that is connected to  ─▶ return, or drop at the end
//! ```
//! Pods with the same rules share a chain, whose rules never change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use super::{DIRECTIONS, Direction, Plan};
use crate::nftables::Base;
use crate::nftables::rule::{Field, Rule, Statement, Verdict};
use crate::nftables::set::{Element, Key, SetKind};
use crate::nftables::transaction::{Command, Hook, Transaction};

/// The place of the rules: behind those of Services, where packets have the addresses of endpoints.
const FORWARD: Hook = Hook {
    kind: "filter",
    hook: ("forward", 2),
    priority: 10,
};
const SOURCE: &[Field] = &[Field::Source];
const DESTINATION: &[Field] = &[Field::Destination];
/// The Pods of this machine that have an address, and the addresses that they may have.
const KNOWN: &str = "known";
const RANGES: &str = "ranges";
/// The restricted Pods, which reach themselves through Services.
const ITSELF: &str = "itself";

type Rules = Arc<Vec<Rule>>;

/// A plan that is programmed, and the numbers of its chains.
#[derive(Clone, Debug, Default)]
struct Programmed {
    plan: Plan,
    chains: BTreeMap<Rules, u64>,
}

/// The table as it is programmed.
#[derive(Debug)]
pub struct Table {
    name: String,
    /// `None` if it is not known what there is.
    programmed: Option<Programmed>,
    /// The number of the last chain.
    last: u64,
}

impl Table {
    /// Returns a table with this name, which may be there or not.
    pub const fn new(name: String) -> Self {
        Self {
            name,
            programmed: None,
            last: 0,
        }
    }

    /// Forgets what is programmed: the next transaction replaces the table.
    pub fn forget(&mut self) {
        self.programmed = None;
    }

    /// Returns the transaction that fails if the table is not there, though it should be, and changes nothing.
    pub fn probe(&self) -> Option<Transaction> {
        let programmed = self.programmed.as_ref()?;
        (programmed.plan != Plan::default()).then(|| {
            let mut probe = Transaction::new(&self.name);
            probe.chain(Direction::Egress.chain());
            probe
        })
    }

    /// Returns the transaction that programs a plan, and takes it for programmed; `None` if it already is.
    pub fn change(&mut self, plan: &Plan) -> Option<Transaction> {
        let former = self.programmed.take();
        if former.as_ref().is_some_and(|former| former.plan == *plan) {
            self.programmed = former;
            return None;
        }
        // A table with other ranges is a new one.
        let (empty, ranges) = (Plan::default(), &plan.ranges);
        let is_kept = |former: &Programmed| former.plan != empty && former.plan.ranges == *ranges;
        let kept = former.filter(|former| *plan != empty && is_kept(former));
        let mut transaction = match &kept {
            Some(_) => Transaction::new(&self.name),
            None => Base::remove(&self.name),
        };
        if kept.is_none() && *plan != empty {
            add_base(&mut transaction, plan);
        }
        let before = kept.unwrap_or_default();
        let after = Programmed {
            chains: self.numbered(&before.chains, plan),
            plan: plan.clone(),
        };
        add_delta(&mut transaction, &before, &after);
        self.programmed = Some(after);
        Some(transaction)
    }

    /// Returns the chains of a plan. Those that are there keep their numbers.
    fn numbered(&mut self, former: &BTreeMap<Rules, u64>, plan: &Plan) -> BTreeMap<Rules, u64> {
        let mut numbers = BTreeMap::new();
        for rules in plan.rules.values() {
            numbers.entry(Arc::clone(rules)).or_insert_with(|| {
                former.get(rules).copied().unwrap_or_else(|| {
                    self.last = self.last.wrapping_add(1);
                    self.last
                })
            });
        }
        numbers
    }
}

impl Direction {
    /// Returns the name of the chain and of the map of a direction.
    const fn chain(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }
}

impl Programmed {
    /// Returns the numbers of the chains of Pods in one direction.
    fn chains_of(&self, of: Direction) -> BTreeSet<(Ipv4Addr, u64)> {
        let rules = self.plan.rules.iter();
        let rules = rules.filter(|((direction, _), _)| *direction == of);
        rules
            .filter_map(|((_, ip), rules)| Some((*ip, *self.chains.get(rules)?)))
            .collect()
    }

    /// Returns the addresses of Pods that are restricted.
    fn restricted(&self) -> BTreeSet<Ipv4Addr> {
        self.plan.rules.keys().map(|(_, ip)| *ip).collect()
    }
}

/// Adds the table without any policy.
fn add_base(transaction: &mut Transaction, plan: &Plan) {
    transaction.push(Command::AddTable);
    for (name, kind) in [
        (KNOWN, SetKind::Addresses),
        (RANGES, SetKind::Ranges),
        (ITSELF, SetKind::Pairs),
        (Direction::Egress.chain(), SetKind::AddressVerdicts),
        (Direction::Ingress.chain(), SetKind::AddressVerdicts),
    ] {
        transaction.push(Command::AddSet(name.to_owned(), kind));
    }
    transaction.push(Command::AddChain("forward".to_owned(), Some(FORWARD)));
    let accept = || Statement::Verdict(Verdict::Accept);
    let pair = &[Field::Source, Field::Destination];
    let itself = Statement::In(pair, ITSELF.to_owned());
    transaction.rule("forward", [Statement::Established, accept()]);
    transaction.rule("forward", [itself, accept()]);
    for (direction, side) in [
        (Direction::Egress, SOURCE),
        (Direction::Ingress, DESTINATION),
    ] {
        let chain = direction.chain();
        transaction.chain(chain);
        let jump = Verdict::Jump(chain.to_owned());
        transaction.rule("forward", [Statement::Verdict(jump)]);
        transaction.rule(chain, [Statement::Vmap(side, chain.to_owned())]);
        let unknown = [
            Statement::NotIn(side, KNOWN.to_owned()),
            Statement::In(side, RANGES.to_owned()),
            Statement::Verdict(Verdict::Drop),
        ];
        transaction.rule(chain, unknown);
    }
    let ranges = plan.ranges.iter().copied().map(Key::Range);
    transaction.elements(RANGES, ranges.map(Element::of).collect());
}

/// Adds a delta, in an order in which nothing refers to what is not there.
fn add_delta(transaction: &mut Transaction, before: &Programmed, after: &Programmed) {
    let none = BTreeSet::new();
    for (name, set) in &after.plan.sets {
        let former = before.plan.sets.get(name).map(|set| &set.elements);
        if former.is_none() {
            transaction.push(Command::AddSet(name.clone(), set.kind));
        }
        let former = former.unwrap_or(&none);
        replace(transaction, name, (former, &set.elements), |key| {
            Element::of(*key)
        });
    }
    for (rules, number) in &after.chains {
        if !before.chains.contains_key(rules) {
            add_chain(transaction, *number, rules);
        }
    }
    for direction in DIRECTIONS {
        let chains = (&before.chains_of(direction), &after.chains_of(direction));
        replace(transaction, direction.chain(), chains, |(ip, number)| {
            Element::verdict(Key::Address(*ip), Verdict::Goto(chain(*number)))
        });
    }
    let known = (&before.plan.known, &after.plan.known);
    replace(transaction, KNOWN, known, |ip| {
        Element::of(Key::Address(*ip))
    });
    let restricted = (&before.restricted(), &after.restricted());
    replace(transaction, ITSELF, restricted, |ip| {
        Element::of(Key::Pair(*ip))
    });
    add_removals(transaction, before, after);
}

fn chain(number: u64) -> String {
    format!("rules-{number}")
}

fn add_chain(transaction: &mut Transaction, number: u64, rules: &[Rule]) {
    let name = chain(number);
    transaction.chain(&*name);
    for rule in rules {
        transaction.rule(&*name, rule.clone());
    }
    transaction.rule(&*name, [Statement::Verdict(Verdict::Drop)]);
}

/// Replaces elements of a set or map by others.
fn replace<T: Ord>(
    transaction: &mut Transaction,
    set: &str,
    (before, after): (&BTreeSet<T>, &BTreeSet<T>),
    element: impl Fn(&T) -> Element,
) {
    let gone = before.difference(after).map(&element).collect();
    transaction.delete_elements(set, gone);
    transaction.elements(set, after.difference(before).map(&element).collect());
}

/// Removes the chains and sets that nothing refers to any more.
fn add_removals(transaction: &mut Transaction, before: &Programmed, after: &Programmed) {
    for (rules, number) in &before.chains {
        if !after.chains.contains_key(rules) {
            transaction.push(Command::FlushChain(chain(*number)));
            transaction.push(Command::DeleteChain(chain(*number)));
        }
    }
    for name in before.plan.sets.keys() {
        if !after.plan.sets.contains_key(name) {
            transaction.push(Command::DeleteSet(name.clone()));
        }
    }
}
