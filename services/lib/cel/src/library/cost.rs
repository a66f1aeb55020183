//! The costs of calls, as upstream's table has them.

use super::super::meter::scan;
use super::super::values::Val;

/// The cost of creating a list.
pub(in super::super) const LIST: u64 = 10;
/// The cost of creating a typed object.
pub(in super::super) const STRUCT: u64 = 40;
/// The cost of a decision about permissions: it may need a call over the network.
const DECISION: u64 = 350_000;
/// The estimated cost of comparing two addresses of 16 bytes.
pub(in super::super) const ADDRESSES: u64 = 4;
/// The estimated cost of masking a network and comparing it with another.
pub(in super::super) const NETWORKS: u64 = 7;

/// The cost of a call, by the sizes of its arguments. A receiver is the first argument.
///
/// A unit is paid for ten bytes of a string that are read once. Where upstream charges for more than is done, less is
/// paid at run time, but never less than the work: variants that say "as it is made" cost what the implementation
/// spends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) enum Cost {
    /// One unit, whatever the arguments are.
    Unit,
    /// A decision about permissions.
    Decision,
    /// The first argument is read.
    First,
    /// The first argument is read and a result of its size is written.
    Copy,
    /// The estimate reads the second argument, a call the first.
    Affix,
    /// A result of the size of both arguments is written.
    Sum,
    /// The first argument is searched for the second.
    Search,
    /// The first argument is searched for one that is not counted.
    Find,
    /// The first argument is matched against the second. Paid as it is made.
    Match,
    /// The second argument is matched against the expression of a format. Paid as it is made.
    Format,
    /// The arguments are compared. Paid as it is made.
    Compare,
    /// Every item of the second argument is compared with the first. Paid as it is made.
    Member,
    /// Every item of the first argument is visited, and read if it is a string. Paid as it is made.
    Items,
    /// Every item of the first argument is compared with every item of the second, so many times. Paid as it is made.
    Pairs(u64),
    /// Every item of the first argument is compared with every other, and a list is made. Paid as it is made.
    Square,
    /// A part of a list is copied. Paid as it is made.
    Slice,
    /// A list of a number of items is made. Paid as it is made.
    Range,
    /// A list is copied.
    Reverse,
    /// The items of the lists of a list are copied. Paid as it is made.
    Flatten,
    /// The items of a list are written as one string. Paid as it is made.
    Join,
    /// The last argument is read as requirements.
    Selector,
    /// An address is compared with a network, and read before if it is a string. Paid as it is made.
    Address,
    /// A network is compared with a network, and read before if it is a string. Paid as it is made.
    Network,
}

impl Cost {
    /// Returns the cost that is paid before the call of a function with these arguments.
    pub(in super::super) fn of(self, args: &[Val<'_>]) -> u64 {
        let size = |index: usize| args.get(index).map_or(1, Val::size);
        match self {
            Cost::Unit | Cost::Pairs(_) => 1,
            Cost::Decision => DECISION,
            Cost::First | Cost::Affix => scan(size(0)),
            Cost::Copy => scan(size(0).saturating_mul(2)),
            Cost::Sum => scan(size(0).saturating_add(size(1))),
            Cost::Search => scan(size(0)).saturating_mul(scan(size(1))),
            Cost::Find => size(0) / 10,
            Cost::Reverse => created(size(0)),
            Cost::Square | Cost::Slice | Cost::Range | Cost::Flatten => created(0),
            Cost::Selector => selector(size(1)),
            Cost::Match
            | Cost::Format
            | Cost::Compare
            | Cost::Member
            | Cost::Items
            | Cost::Join
            | Cost::Address
            | Cost::Network => 0,
        }
    }
}

/// Returns the cost of a call that creates a list, and does so many units of work.
pub(in super::super) fn created(work: u64) -> u64 {
    work.saturating_add(1 + LIST)
}

/// Returns the cost of reading a selector of a length: the shortest requirement has two characters.
pub(in super::super) fn selector(length: u64) -> u64 {
    let requirements = length.div_ceil(2).saturating_mul(LIST + STRUCT);
    requirements.saturating_add(LIST + scan(length))
}

/// Returns the cost of matching a string against a regular expression of a length: an expression has four characters or
/// more.
pub(in super::super) fn matching(text: u64, expression: u64) -> u64 {
    scan(text.saturating_add(1)).saturating_mul(expression.div_ceil(4))
}
