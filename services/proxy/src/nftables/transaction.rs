//! A transaction: commands that the kernel executes all or not at all. As text it is a script of `nft`. Pure.

use std::fmt;

use super::rule::{Rule, joined};
use super::set::{Element, SetKind};

/// The place of a chain in the way of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// `nat` or `filter`.
    pub kind: &'static str,
    /// The name and the number of the hook.
    pub hook: (&'static str, u32),
    /// The order among chains of one hook.
    pub priority: i32,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Adds the table unless it is there.
    AddTable,
    /// Deletes the table and everything in it.
    DeleteTable,
    /// Adds a set or map unless it is there.
    AddSet(String, SetKind),
    /// Deletes a set or map.
    DeleteSet(String),
    /// Adds a chain unless it is there.
    AddChain(String, Option<Hook>),
    /// Deletes all rules of a chain.
    FlushChain(String),
    /// Deletes a chain.
    DeleteChain(String),
    /// Adds a rule at the end of a chain.
    AddRule(String, Rule),
    /// Adds elements to a set or map.
    AddElements(String, Vec<Element>),
    /// Deletes elements of a set or map.
    DeleteElements(String, Vec<Element>),
}

/// Commands for one table of IPv4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The name of the table.
    pub table: String,
    /// The commands in their order.
    pub commands: Vec<Command>,
}

impl Transaction {
    /// Returns a transaction without commands.
    pub fn new(table: &str) -> Self {
        Self {
            table: table.to_owned(),
            commands: Vec::new(),
        }
    }

    /// Returns the text of a command.
    pub fn text(&self, command: &Command) -> String {
        let (verb, rest) = words(command);
        let space = if rest.is_empty() { "" } else { " " };
        format!("{verb} ip {}{space}{rest}", self.table)
    }

    /// Adds a command.
    pub fn push(&mut self, command: Command) {
        self.commands.push(command);
    }

    /// Adds a chain without a hook.
    pub fn chain(&mut self, name: impl Into<String>) {
        self.push(Command::AddChain(name.into(), None));
    }

    /// Adds a rule at the end of a chain.
    pub fn rule(&mut self, chain: impl Into<String>, rule: impl Into<Rule>) {
        self.push(Command::AddRule(chain.into(), rule.into()));
    }

    /// Adds elements to a set or map, if there are any.
    pub fn elements(&mut self, set: impl Into<String>, elements: Vec<Element>) {
        if !elements.is_empty() {
            self.push(Command::AddElements(set.into(), elements));
        }
    }

    /// Deletes elements of a set or map, if there are any.
    pub fn delete_elements(&mut self, set: impl Into<String>, elements: Vec<Element>) {
        if !elements.is_empty() {
            self.push(Command::DeleteElements(set.into(), elements));
        }
    }
}

/// Returns the words before the table and those after it.
fn words(command: &Command) -> (&'static str, String) {
    let elements =
        |set: &String, elements: &[Element]| format!("{set} {{ {} }}", joined(elements, ", "));
    match command {
        Command::AddTable => ("add table", String::new()),
        Command::DeleteTable => ("delete table", String::new()),
        Command::AddSet(name, kind) => {
            let verb = if kind.is_map() { "add map" } else { "add set" };
            (verb, format!("{name} {{ {kind} ; }}"))
        }
        Command::DeleteSet(name) => ("delete set", name.clone()),
        Command::AddChain(name, None) => ("add chain", name.clone()),
        Command::AddChain(name, Some(hook)) => ("add chain", format!("{name} {{ {hook} ; }}")),
        Command::FlushChain(name) => ("flush chain", name.clone()),
        Command::DeleteChain(name) => ("delete chain", name.clone()),
        Command::AddRule(chain, rule) => ("add rule", format!("{chain} {}", joined(rule, " "))),
        Command::AddElements(set, of) => ("add element", elements(set, of)),
        Command::DeleteElements(set, of) => ("delete element", elements(set, of)),
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, hook, priority) = (self.kind, self.hook.0, self.priority);
        write!(f, "type {kind} hook {hook} priority {priority}")
    }
}

impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut commands = self.commands.iter();
        commands.try_for_each(|command| writeln!(f, "{}", self.text(command)))
    }
}
