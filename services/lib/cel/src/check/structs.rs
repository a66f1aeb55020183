//! Literals of typed objects, which only the expressions of mutating policies may have.

use std::sync::Arc;

use cel::common::ast::{EntryExpr, StructExpr, StructFieldExpr};

use super::super::expr::Expr;
use super::super::library::Function;
use super::super::library::cost::STRUCT;
use super::super::patch;
use super::super::size::Size;
use super::super::types::Type;
use super::{Checked, Checker, Outcome, Problem, undeclared};

impl<'n> Checker<'n> {
    /// Whether expressions may call a function.
    pub(super) fn knows(&self, function: &Function) -> bool {
        self.has_patch_types || !function.name.starts_with("jsonpatch.")
    }

    pub(super) fn structure(&mut self, id: u64, literal: &StructExpr) -> Outcome<'n> {
        let name = literal.type_name.trim_start_matches('.');
        if !self.has_patch_types || !patch::is_type(name) {
            return Err(undeclared(id, &literal.type_name));
        }
        let (mut fields, mut cost) = (Vec::with_capacity(literal.entries.len()), STRUCT);
        for entry in &literal.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                continue;
            };
            let value = self.check(&field.value)?;
            fits(name, entry.id, field, &value.ty)?;
            cost = cost.saturating_add(value.cost);
            fields.push((Arc::from(field.field.as_str()), value.expr, field.optional));
        }
        let name: Arc<str> = name.into();
        Ok(Checked {
            expr: Expr::Struct(name.clone(), fields),
            ty: Type::Struct(name),
            size: Size::UNKNOWN,
            cost,
        })
    }
}

/// Checks that a value can be that of a field.
fn fits(of: &str, id: u64, field: &StructFieldExpr, found: &Type<'_>) -> Result<(), Problem> {
    let name = &field.field;
    let Some(wanted) = patch::field(of, name) else {
        return Err(Problem::new(id, format!("undefined field '{name}'")));
    };
    let found = match (field.optional, found) {
        (true, Type::Optional(inner)) => inner,
        (true, Type::Dyn) | (false, _) => found,
        (true, other) => {
            let text = format!("expected type 'optional_type({other})' but found '{other}'");
            return Err(Problem::new(field.value.id, text));
        }
    };
    match wanted.clone().join(found.clone()) {
        Some(_) => Ok(()),
        None => Err(Problem::new(
            id,
            format!("expected type of field '{name}' is '{wanted}' but provided type is '{found}'"),
        )),
    }
}
