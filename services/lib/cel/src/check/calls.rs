//! Calls of functions: which overloads they mean, and what they cost.

use std::sync::Arc;

use super::super::expr::Expr;
use super::super::library::regex::Compiled;
use super::super::library::{self, Function, Overload};
use super::super::time;
use super::super::types::{Bindings, Type};
use super::super::values::Val;
use super::{Checked, Outcome, estimate, no_overload};

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
    root: u64,
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
        .map(|overload| estimate::cost(overload, &args))
        .max();
    let cost = args
        .iter()
        .fold(own.unwrap_or(1), |sum, arg| sum.saturating_add(arg.cost));
    Ok(Checked {
        size: estimate::size(function.name, &ty, &args, root),
        ty,
        cost,
        expr: Expr::Call {
            overloads: found,
            args: args.into_iter().map(|arg| arg.expr).collect(),
        },
    })
}
