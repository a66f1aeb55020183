//! Calls of functions: which overloads they mean, and what they cost.

use std::sync::Arc;

use cel::common::ast::operators;

use super::super::expr::Expr;
use super::super::library::regex::Compiled;
use super::super::library::{self, Cost, Function, Overload};
use super::super::meter::scan;
use super::super::size::Size;
use super::super::time;
use super::super::types::{Bindings, Type};
use super::super::values::Val;
use super::{Checked, Outcome, no_overload};

/// Compiles the literals that are regular expressions, and checks those of times.
pub(super) fn literals(function: &Function, args: &mut [Checked<'_>]) -> Result<(), String> {
    if let Some(index) = library::regex::argument(function.name)
        && let Some(arg) = args.get_mut(index)
        && let Expr::Const(Val::String(source)) = &arg.expr
    {
        let compiled = Compiled::new(source);
        let invalid = |_| format!("invalid {} argument", function.name);
        arg.expr = Expr::Const(Val::Pattern(Arc::new(compiled.map_err(invalid)?)));
    }
    let [
        Checked {
            expr: Expr::Const(Val::String(text)),
            ..
        },
    ] = args
    else {
        return Ok(());
    };
    let is_valid = match function.name {
        "duration" => time::go_duration(text).is_some(),
        "timestamp" => time::timestamp(text).is_some(),
        _ => true,
    };
    match is_valid {
        true => Ok(()),
        false => Err(format!("invalid {} argument", function.name)),
    }
}

/// Finds the overloads that a call may mean.
pub(super) fn resolve<'n>(
    id: u64,
    function: &'static Function,
    is_member: bool,
    args: Vec<Checked<'n>>,
) -> Outcome<'n> {
    let mut found: Vec<&'static Overload> = Vec::new();
    let mut ty: Option<Type<'n>> = None;
    for overload in &function.overloads {
        if overload.is_member != is_member || overload.parameters.len() != args.len() {
            continue;
        }
        let mut bindings = Bindings::default();
        let mut pairs = overload.parameters.iter().zip(&args);
        if pairs.all(|(parameter, arg)| bindings.accept(parameter, &arg.ty)) {
            let result = bindings.resolve(&overload.result);
            ty = Some(match ty {
                None => result,
                Some(known) => known.join(result).unwrap_or(Type::Dyn),
            });
            found.push(overload);
        }
    }
    let Some(ty) = ty else {
        let types: Vec<_> = args.iter().map(|arg| &arg.ty).collect();
        return Err(no_overload(id, function.name, &types, is_member));
    };
    let own = found
        .iter()
        .map(|overload| call_cost(overload.cost, &args))
        .max();
    let cost = args
        .iter()
        .fold(own.unwrap_or(1), |sum, arg| sum.saturating_add(arg.cost));
    Ok(Checked {
        size: result_size(function.name, &ty, &args),
        ty,
        cost,
        expr: Expr::Call {
            overloads: found,
            args: args.into_iter().map(|arg| arg.expr).collect(),
        },
    })
}

fn call_cost(cost: Cost, args: &[Checked<'_>]) -> u64 {
    let sizes: Vec<_> = args
        .iter()
        .map(|arg| {
            if arg.ty.is_scalar() {
                1
            } else {
                arg.size.max()
            }
        })
        .collect();
    match (cost, args) {
        (Cost::Items, [list, ..]) => {
            let item = 1 + scan(list.size.item().max().min(match &list.ty {
                Type::List(item) if item.is_scalar() => 0,
                _ => u64::MAX,
            }));
            cost.of(&sizes).saturating_mul(item)
        }
        _ => cost.of(&sizes),
    }
}

/// Returns the largest size of the result of a call.
fn result_size<'n>(name: &str, ty: &Type<'n>, args: &[Checked<'n>]) -> Size<'n> {
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
        ("slice" | "reverse" | "sort" | "distinct" | "flatten", _) => first(),
        ("split" | "findAll", _) => Size::list(size(0), Size::Of(size(0), None)),
        ("replace", _) => Size::Of(
            size(0).saturating_add(1).saturating_mul(size(2).max(1)),
            None,
        ),
        ("join", _) => {
            let item =
                first()
                    .item()
                    .max()
                    .saturating_add(if args.len() > 1 { size(1) } else { 0 });
            Size::Of(size(0).saturating_mul(item), None)
        }
        (_, ty) if ty.is_scalar() => Size::ONE,
        ("string", _) if args.first().is_some_and(|arg| arg.ty.is_scalar()) => Size::Of(64, None),
        ("format", _) => Size::Of(all.saturating_mul(64), None),
        _ => Size::Of(all, None),
    }
}
