//! Type-checks comprehensions.

use cel::common::ast::{ComprehensionExpr, Expr as Ast, IdedExpr};

use super::super::expr::{Expr, Fold};
use super::super::library::cost::LIST;
use super::super::macros::{INSERT, RESULT};
use super::super::size::Size;
use super::super::types::Type;
use super::{Checked, Checker, Outcome, Problem, Variable, undeclared};

impl<'n> Checker<'n> {
    pub(super) fn fold(&mut self, fold: &ComprehensionExpr) -> Outcome<'n> {
        let range = self.check(&fold.iter_range)?;
        let init = self.check(&fold.accu_init)?;
        let depth = self.scope.len();
        let count = range.size.max();
        let (variable, second) = self.iterate(fold, &range)?;
        let accu = self.declare(&fold.accu_var, init.ty.clone(), init.size.clone());
        let cond = self.check(&fold.loop_cond)?;
        let step = self.check(&fold.loop_step)?;
        // The result does not see the variables of the loop, but these names are not its own.
        self.scope.truncate(depth);
        let ty = init.ty.clone().join(step.ty.clone());
        let ty = ty.unwrap_or(step.ty);
        let size = match (&init.ty, &fold.accu_init.expr) {
            (_, Ast::List(_) | Ast::Map(_)) => Size::list(count, step.size.item()),
            _ => init.size,
        };
        self.scope.push(Variable {
            name: fold.accu_var.clone(),
            slot: accu,
            ty,
            size,
            depth: 0,
        });
        let result = self.check(&fold.result)?;
        self.scope.truncate(depth);
        let pass = cond.cost.saturating_add(step.cost);
        let ends = range.cost.saturating_add(init.cost);
        let cost = count
            .saturating_mul(pass)
            .saturating_add(ends)
            .saturating_add(result.cost);
        Ok(Checked {
            expr: Expr::Fold(Box::new(Fold {
                range: range.expr,
                variable,
                second,
                accu,
                init: init.expr,
                cond: cond.expr,
                step: step.expr,
                result: result.expr,
            })),
            ty: result.ty,
            size: result.size,
            cost,
        })
    }

    /// Declares the variables of a loop.
    fn iterate(
        &mut self,
        fold: &ComprehensionExpr,
        range: &Checked<'n>,
    ) -> Result<(usize, Option<usize>), Problem> {
        let item = range.size.item();
        // The sizes of keys are not limited by schemas; upstream takes them for nothing.
        let key = Size::Of(0, None);
        let ((first, first_size), (second, second_size)) = match (&range.ty, &fold.iter_var2) {
            (Type::List(ty), None) => (((**ty).clone(), item), (Type::Dyn, Size::ONE)),
            (Type::List(ty), Some(_)) => ((Type::Int, Size::ONE), ((**ty).clone(), item)),
            (Type::Map(keys, values), _) => (((**keys).clone(), key), ((**values).clone(), item)),
            (Type::Dyn | Type::Param(_), _) => ((Type::Dyn, item.clone()), (Type::Dyn, item)),
            (other, _) => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                return Err(Problem::new(fold.iter_range.id, text));
            }
        };
        let variable = self.declare(&fold.iter_var, first, first_size);
        let name = fold.iter_var2.as_deref();
        let second = name.map(|name| self.declare(name, second, second_size));
        Ok((variable, second))
    }

    /// Checks `list + [item]` for the variable of a result, which is extended in place.
    pub(super) fn append(
        &mut self,
        accu: &IdedExpr,
        item: &IdedExpr,
    ) -> Result<Option<Checked<'n>>, Problem> {
        let (Ast::Ident(name), Ast::List(list)) = (&accu.expr, &item.expr) else {
            return Ok(None);
        };
        let ([item], [], true) = (
            list.elements.as_slice(),
            list.optional_indices.as_slice(),
            name == RESULT,
        ) else {
            return Ok(None);
        };
        let Some(accu) = self.variable(name) else {
            return Ok(None);
        };
        let (Expr::Var(slot), Type::List(known)) = (&accu.expr, accu.ty) else {
            return Ok(None);
        };
        let item = self.check(item)?;
        Ok(Some(Checked {
            expr: Expr::Append(*slot, Box::new(item.expr)),
            ty: Type::list(known.join(item.ty).unwrap_or(Type::Dyn)),
            size: Size::list(1, item.size),
            cost: item.cost.saturating_add(accu.cost + LIST + 1),
        }))
    }

    pub(super) fn insert(&mut self, id: u64, accu: &IdedExpr, entry: &[IdedExpr]) -> Outcome<'n> {
        let accu = self.check(accu)?;
        let Expr::Var(slot) = accu.expr else {
            return Err(undeclared(id, INSERT));
        };
        let mut parts = Vec::new();
        for part in entry {
            parts.push(self.check(part)?);
        }
        let cost = parts
            .iter()
            .fold(accu.cost + 1, |sum, part| sum.saturating_add(part.cost));
        let (ty, item) = match parts.as_slice() {
            [key, value] => (
                Type::Map(Box::new(key.ty.clone()), Box::new(value.ty.clone())),
                value.size.clone(),
            ),
            [entries] if matches!(entries.ty, Type::Map(..) | Type::Dyn) => {
                (entries.ty.clone(), entries.size.item())
            }
            _ => return Err(Problem::new(id, "expected a map of one entry")),
        };
        let args = parts.into_iter().map(|part| part.expr).collect();
        Ok(Checked {
            expr: Expr::Insert(slot, args),
            ty,
            size: Size::list(1, item),
            cost,
        })
    }
}
