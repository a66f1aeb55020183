//! The most that calls may cost, and the largest sizes of their results, as upstream estimates them.

use cel::common::ast::operators;

use super::super::expr::Expr;
use super::super::library::cost::{ADDRESSES, NETWORKS, created, matching, selector};
use super::super::library::{Cost, Overload};
use super::super::meter::scan;
use super::super::size::Size;
use super::super::types::Type;
use super::super::values::Val;
use super::Checked;

/// The cost per unit of text of the expression of a format whose name is not known: its length is at most 128.
const FORMAT: u64 = 32;

/// Returns the most that a call of an overload may cost, without its arguments.
pub(super) fn cost(overload: &Overload, args: &[Checked<'_>]) -> u64 {
    let size = |index: usize| args.get(index).map_or(1, |arg| arg.size.max());
    let (first, second) = (size(0), size(1));
    let text = |index: usize| match overload.parameters.get(index) {
        Some(Type::String) => scan(size(index)),
        _ => 0,
    };
    match overload.cost {
        Cost::Unit | Cost::Decision => overload.cost.of(&[]),
        Cost::First | Cost::Find => scan(first),
        Cost::Copy => scan(first.saturating_mul(2)),
        Cost::Affix => scan(second),
        Cost::Sum => scan(first.saturating_add(second)),
        Cost::Search => scan(first).saturating_mul(scan(second)),
        Cost::Match => matching(first, second),
        Cost::Format => scan(second).saturating_mul(FORMAT),
        Cost::Compare => match overload.parameters.first() {
            Some(Type::Param(_) | Type::String | Type::Bytes) => scan(first.min(second)),
            _ => 1,
        },
        Cost::Member => second,
        Cost::Items => items(args),
        Cost::Pairs(times) => first
            .saturating_mul(second)
            .saturating_mul(times)
            .saturating_add(1),
        Cost::Square => {
            let pairs = first.saturating_mul(first);
            let read = match overload.parameters.first() {
                Some(Type::List(item)) if is_text(item) => scan(pairs),
                _ => 0,
            };
            created(pairs.saturating_mul(2).saturating_add(read))
        }
        Cost::Slice => created(part(args)),
        Cost::Range => created(literal(args.first()).unwrap_or(u64::MAX)),
        Cost::Reverse => created(first),
        Cost::Flatten => {
            let depth = match args.get(1) {
                None => 1,
                depth => literal(depth).unwrap_or(u64::MAX),
            };
            created(first.saturating_mul(depth))
        }
        Cost::Join => scan(joined(args)),
        Cost::Selector => selector(second),
        Cost::Address => ADDRESSES.saturating_add(text(1)),
        Cost::Network => NETWORKS.saturating_add(text(1)),
    }
}

fn is_text(ty: &Type<'_>) -> bool {
    matches!(ty, Type::String | Type::Bytes)
}

/// Returns the cost of visiting every item of a list.
fn items(args: &[Checked<'_>]) -> u64 {
    let Some(list) = args.first() else {
        return 1;
    };
    let count = list.size.max();
    match &list.ty {
        Type::List(item) if is_text(item) => {
            count.saturating_mul(scan(list.size.item().max()).saturating_add(1))
        }
        Type::List(_) => count,
        _ => scan(count),
    }
}

/// Returns the value of an argument that is a literal.
fn literal(arg: Option<&Checked<'_>>) -> Option<u64> {
    match &arg?.expr {
        Expr::Const(Val::Int(number)) => Some(u64::try_from(*number).unwrap_or(0)),
        _ => None,
    }
}

/// Returns the largest number of items of a part of a list.
fn part(args: &[Checked<'_>]) -> u64 {
    let whole = || args.first().map_or(0, |list| list.size.max());
    let end = literal(args.get(2)).unwrap_or_else(whole);
    end.saturating_sub(literal(args.get(1)).unwrap_or(0))
}

/// Returns the largest length of the items of a list, with separators between them.
fn joined(args: &[Checked<'_>]) -> u64 {
    let Some(list) = args.first() else {
        return 0;
    };
    let count = list.size.max();
    let separators = args.get(1).map_or(0, |separator| separator.size.max());
    let separators = count.saturating_sub(1).saturating_mul(separators);
    count
        .saturating_mul(list.size.item().max())
        .saturating_add(separators)
}

/// Returns the largest length of a string whose parts are replaced.
fn replaced(args: &[Checked<'_>]) -> u64 {
    let size = |index: usize| args.get(index).map_or(0, |arg| arg.size.max());
    let (text, new) = (size(0), size(2));
    let shortest = match args.get(1).map(|old| &old.expr) {
        Some(Expr::Const(old)) => old.size(),
        _ => 0,
    };
    match shortest {
        0 => text
            .saturating_add(1)
            .saturating_mul(new)
            .saturating_add(text),
        old if new <= old => text,
        old => text.div_ceil(old).saturating_mul(new),
    }
}

/// Returns the largest size of the result of a call. `root` is that of the value that the expression is for.
pub(super) fn size<'n>(name: &str, ty: &Type<'n>, args: &[Checked<'n>], root: u64) -> Size<'n> {
    let made = result(name, ty, args);
    match ty {
        // Upstream takes the strings of a list that a function made for values of the root's size.
        Type::List(item) if is_text(item) && name != operators::INDEX => {
            Size::list(made.max(), Size::Of(made.item().max().min(root), None))
        }
        _ => made,
    }
}

fn result<'n>(name: &str, ty: &Type<'n>, args: &[Checked<'n>]) -> Size<'n> {
    let size = |index: usize| args.get(index).map_or(1, |arg| arg.size.max());
    let all = args
        .iter()
        .fold(0, |sum: u64, arg| sum.saturating_add(arg.size.max()));
    let first = || args.first().map_or(Size::ONE, |arg| arg.size.clone());
    match (name, ty) {
        (operators::INDEX | operators::OPT_INDEX | "min" | "max" | "first" | "last", _) => {
            first().item()
        }
        ("value" | "or" | "orValue" | "of" | "ofNonZeroValue" | "dyn", _) => args
            .iter()
            .fold(Size::Of(0, None), |sum, arg| sum.larger(arg.size.clone())),
        (operators::ADD, Type::List(_)) => {
            let second = args.get(1).map_or(Size::ONE, |arg| arg.size.item());
            Size::list(all, first().item().larger(second))
        }
        ("reverse" | "flatten", _) => first(),
        ("sort" | "distinct", _) => Size::list(size(0).saturating_mul(size(0)), first().item()),
        ("slice", _) => Size::list(part(args), first().item()),
        ("lists.range", _) => Size::list(literal(args.first()).unwrap_or(u64::MAX), Size::ONE),
        ("split", _) => {
            let count = literal(args.get(2)).unwrap_or_else(|| size(0));
            Size::list(count, Size::Of(size(0), None))
        }
        ("findAll", _) => Size::list(size(0), Size::Of(size(0), None)),
        ("replace", _) => Size::Of(replaced(args), None),
        ("join", _) => Size::Of(joined(args), None),
        (
            "lowerAscii"
            | "upperAscii"
            | "substring"
            | "trim"
            | "find"
            | "url"
            | "jsonpatch.escapeKey",
            _,
        ) => Size::Of(size(0), None),
        ("strings.quote", _) => Size::Of(size(0).saturating_mul(2).saturating_add(2), None),
        (_, ty) if ty.is_scalar() => Size::ONE,
        ("bytes", _) => Size::Of(size(0).saturating_mul(4), None),
        ("string", _) if args.first().is_some_and(|arg| arg.ty.is_scalar()) => Size::Of(64, None),
        ("format", _) => Size::Of(all.saturating_mul(64), None),
        _ => Size::Of(all, None),
    }
}
