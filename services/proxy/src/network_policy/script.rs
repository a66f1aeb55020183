//! The table of policies as it is programmed, and the transactions that change it. Pure.
//!
//! ```text
//! forward ─▶ egress  ─▶ @egress:  chain of the Pod that connects         ─▶ return, or drop at the end
//!         ─▶ ingress ─▶ @ingress: chain of the Pod that is connected to  ─▶ return, or drop at the end
//! ```
//! Pods with the same rules share a chain, whose rules never change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write as _};
use std::net::Ipv4Addr;
use std::sync::Arc;

use super::{Direction, Elements, Plan};

/// What the table has without any policy.
const BASE: [(&str, &str); 16] = [
    ("set", "ranges { type ipv4_addr ; flags interval ; }"),
    ("set", "known { type ipv4_addr ; }"),
    ("set", "itself { type ipv4_addr . ipv4_addr ; }"),
    ("map", "egress { type ipv4_addr : verdict ; }"),
    ("map", "ingress { type ipv4_addr : verdict ; }"),
    (
        "chain",
        "forward { type filter hook forward priority 10 ; }",
    ),
    ("chain", "egress"),
    ("chain", "ingress"),
    ("rule", "forward ct state established,related accept"),
    // A Pod reaches itself through a Service.
    ("rule", "forward ip saddr . ip daddr @itself accept"),
    ("rule", "forward jump egress"),
    ("rule", "forward jump ingress"),
    ("rule", "egress ip saddr vmap @egress"),
    ("rule", "ingress ip daddr vmap @ingress"),
    ("rule", "egress ip saddr != @known ip saddr @ranges drop"),
    ("rule", "ingress ip daddr != @known ip daddr @ranges drop"),
];

type Rules = Arc<Vec<String>>;

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
    /// The number of the next chain.
    next: u64,
}

impl Table {
    /// Returns a table with this name, which may be there or not.
    pub const fn new(name: String) -> Self {
        Self {
            name,
            programmed: None,
            next: 0,
        }
    }

    /// Forgets what is programmed: the next transaction replaces the table.
    pub fn forget(&mut self) {
        self.programmed = None;
    }

    /// Returns the transaction that fails if the table is not there, though it should be, and changes nothing.
    pub fn probe(&self) -> Option<String> {
        let programmed = self.programmed.as_ref()?;
        let is_expected = programmed.plan != Plan::default();
        is_expected.then(|| format!("add chain ip {} egress\n", self.name))
    }

    /// Returns the transaction that programs a plan, and takes it for programmed; `None` if it already is.
    pub fn change(&mut self, plan: &Plan) -> Option<String> {
        let former = self.programmed.take();
        if former.as_ref().is_some_and(|former| former.plan == *plan) {
            self.programmed = former;
            return None;
        }
        let empty = Plan::default();
        let kept = former.filter(|former| former.plan != empty && *plan != empty);
        let is_new = kept.is_none();
        let before = kept.unwrap_or_default();
        let after = Programmed {
            chains: self.numbered(&before.chains, plan),
            plan: plan.clone(),
        };
        let mut script = Script::new(&self.name);
        if is_new {
            script.replaced(*plan == empty);
        }
        script.delta(&before, &after);
        self.programmed = Some(after);
        Some(script.text)
    }

    /// Returns the chains of a plan. Those that are there keep their numbers.
    fn numbered(&mut self, former: &BTreeMap<Rules, u64>, plan: &Plan) -> BTreeMap<Rules, u64> {
        let rules: BTreeSet<_> = plan.rules.values().cloned().collect();
        let mut number = |rules: &Rules| {
            former.get(rules).copied().unwrap_or_else(|| {
                self.next = self.next.wrapping_add(1);
                self.next
            })
        };
        let number = |rules| (Arc::clone(&rules), number(&rules));
        rules.into_iter().map(number).collect()
    }
}

impl Programmed {
    /// Returns the elements of the map of one direction.
    fn verdicts(&self, of: Direction) -> BTreeSet<(Ipv4Addr, u64)> {
        let rules = self.plan.rules.iter();
        let rules = rules.filter(|((direction, _), _)| *direction == of);
        rules
            .filter_map(|((_, ip), rules)| Some((*ip, *self.chains.get(rules)?)))
            .collect()
    }

    /// Returns the pairs by which restricted Pods reach themselves.
    fn itself(&self) -> BTreeSet<Ipv4Addr> {
        self.plan.rules.keys().map(|(_, ip)| *ip).collect()
    }
}

/// A transaction that is written.
struct Script<'a> {
    table: &'a str,
    text: String,
}

impl<'a> Script<'a> {
    const fn new(table: &'a str) -> Self {
        Self {
            table,
            text: String::new(),
        }
    }

    fn line(&mut self, command: &str, rest: impl Display) {
        let _ = writeln!(self.text, "{command} ip {} {rest}", self.table);
    }

    fn edit(&mut self, command: &str, set: &str, elements: impl Iterator<Item = impl Display>) {
        let elements: Vec<_> = elements.map(|one| one.to_string()).collect();
        if !elements.is_empty() {
            let elements = elements.join(", ");
            self.line(command, format_args!("{set} {{ {elements} }}"));
        }
    }

    /// Removes the table, if it is there; adds an empty one unless it is to be `gone`.
    fn replaced(&mut self, gone: bool) {
        self.line("add table", "");
        self.line("delete table", "");
        if gone {
            return;
        }
        self.line("add table", "");
        for (kind, content) in BASE {
            self.line(&format!("add {kind}"), content);
        }
    }

    /// Adds a delta, in an order in which nothing refers to what is not there.
    fn delta(&mut self, before: &Programmed, after: &Programmed) {
        let sets = (&before.plan.sets, &after.plan.sets);
        for (name, elements) in sets.1 {
            if !sets.0.contains_key(name) {
                self.line("add set", format_args!("{name} {{ {} }}", elements.kind()));
            }
            self.elements(name, sets.0.get(name), elements);
        }
        for (rules, number) in &after.chains {
            if !before.chains.contains_key(rules) {
                self.chain(*number, rules);
            }
        }
        for (map, direction) in [
            ("ingress", Direction::Ingress),
            ("egress", Direction::Egress),
        ] {
            let element = |(ip, number)| format!("{ip} : goto rules-{number}");
            self.replace(
                map,
                &before.verdicts(direction),
                &after.verdicts(direction),
                element,
            );
        }
        self.replace("known", &before.plan.known, &after.plan.known, |ip| ip);
        let pair = |ip| format!("{ip} . {ip}");
        self.replace("itself", &before.itself(), &after.itself(), pair);
        self.intervals("ranges", &before.plan.ranges, &after.plan.ranges);
        self.removed(before, after);
    }

    fn chain(&mut self, number: u64, rules: &[String]) {
        self.line("add chain", format_args!("rules-{number}"));
        for rule in rules.iter().map(String::as_str).chain(["drop"]) {
            self.line("add rule", format_args!("rules-{number} {rule}"));
        }
    }

    /// Changes the elements of a set.
    fn elements(&mut self, name: &str, before: Option<&Elements>, after: &Elements) {
        match (before, after) {
            (Some(before), after) if before == after => {}
            (Some(Elements::Pods(before)), Elements::Pods(after)) => {
                self.replace(name, before, after, |ip| ip);
            }
            (Some(Elements::Ports(before)), Elements::Ports(after)) => {
                self.replace(name, before, after, port);
            }
            // The kernel refuses some deltas of ranges.
            (before, after) => {
                if before.is_some() {
                    self.line("flush set", name);
                }
                self.edit("add element", name, after.texts());
            }
        }
    }

    fn replace<T: Ord + Copy, D: Display>(
        &mut self,
        set: &str,
        before: &BTreeSet<T>,
        after: &BTreeSet<T>,
        element: impl Fn(T) -> D,
    ) {
        let (gone, new) = (before.difference(after), after.difference(before));
        self.edit("delete element", set, gone.map(|one| element(*one)));
        self.edit("add element", set, new.map(|one| element(*one)));
    }

    fn intervals<T: Ord + Display>(
        &mut self,
        set: &str,
        before: &BTreeSet<T>,
        after: &BTreeSet<T>,
    ) {
        if before != after {
            self.line("flush set", set);
            self.edit("add element", set, after.iter());
        }
    }

    fn removed(&mut self, before: &Programmed, after: &Programmed) {
        for (rules, number) in &before.chains {
            if !after.chains.contains_key(rules) {
                self.line("flush chain", format_args!("rules-{number}"));
                self.line("delete chain", format_args!("rules-{number}"));
            }
        }
        for name in before.plan.sets.keys() {
            if !after.plan.sets.contains_key(name) {
                self.line("delete set", name);
            }
        }
    }
}

impl Elements {
    /// Returns the declaration of a set of such elements.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Pods(_) => "type ipv4_addr ;",
            Self::Blocks(_) => "type ipv4_addr ; flags interval ;",
            Self::Ports(_) => "type ipv4_addr . inet_proto . inet_service ;",
        }
    }

    fn texts(&self) -> Box<dyn Iterator<Item = String> + '_> {
        match self {
            Self::Pods(ips) => Box::new(ips.iter().map(Ipv4Addr::to_string)),
            Self::Blocks(ranges) => {
                Box::new(ranges.iter().map(|(first, last)| match first == last {
                    true => first.to_string(),
                    false => format!("{first}-{last}"),
                }))
            }
            Self::Ports(ports) => Box::new(ports.iter().copied().map(port)),
        }
    }
}

fn port((ip, protocol, number): (Ipv4Addr, crate::Protocol, u16)) -> String {
    format!("{ip} . {} . {number}", protocol.name())
}
