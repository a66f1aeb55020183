//! The checker: expressions get types, and the names that they use are found.

mod calls;
mod estimate;
mod folds;
mod structs;

use cel::common::ast::{
    CallExpr, EntryExpr, Expr as Ast, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr,
    operators,
};

use super::expr::{Expr, Select, SelectKind};
use super::library;
use super::library::cost::LIST;
use super::macros::INSERT;
use super::patch;
use super::size::Size;
use super::types::Type;
use super::values::Val;

const SELECT: u64 = 1;
const MAP: u64 = 30;

/// An expression with what is known of its value, and the most that it may cost.
pub(super) struct Checked<'n> {
    pub(super) expr: Expr,
    pub(super) ty: Type<'n>,
    pub(super) size: Size<'n>,
    pub(super) cost: u64,
}

/// An error of an expression, and its position.
pub(super) struct Problem {
    pub(super) id: u64,
    pub(super) text: String,
}

impl Problem {
    fn new(id: u64, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { id, text }
    }
}

type Outcome<'n> = Result<Checked<'n>, Problem>;

struct Variable<'n> {
    name: String,
    slot: usize,
    ty: Type<'n>,
    size: Size<'n>,
    /// The levels of the expression that computes it when it is read; 0 if its value is given.
    depth: usize,
}

/// The variables that an expression can use.
#[derive(Default)]
pub(super) struct Checker<'n> {
    scope: Vec<Variable<'n>>,
    /// The number of variables of the whole expression.
    pub(super) slots: usize,
    /// The first variables that were used.
    pub(super) used: [bool; 2],
    /// The levels of the deepest computed variable that was used.
    pub(super) deepest: usize,
    /// Whether lists and maps may have items of different types: those of the values of a format may.
    is_mixed: bool,
    /// Whether the types and functions of patches are known.
    pub(super) has_patch_types: bool,
}

impl<'n> Checker<'n> {
    /// Declares a variable, and returns its place.
    pub(super) fn declare(&mut self, name: &str, ty: Type<'n>, size: Size<'n>) -> usize {
        self.declare_computed(name, ty, size, 0)
    }

    /// Declares a variable that an expression of `depth` levels computes when it is read.
    pub(super) fn declare_computed(
        &mut self,
        name: &str,
        ty: Type<'n>,
        size: Size<'n>,
        depth: usize,
    ) -> usize {
        let slot = self.slots;
        self.slots += 1;
        let name = name.to_owned();
        self.scope.push(Variable {
            name,
            slot,
            ty,
            size,
            depth,
        });
        slot
    }

    pub(super) fn check(&mut self, node: &IdedExpr) -> Outcome<'n> {
        match &node.expr {
            Ast::Literal(literal) => Ok(constant(literal)),
            Ast::Ident(name) => self.ident(node.id, name),
            Ast::Select(select) => self.select(node, select),
            Ast::Call(call) => self.call(node.id, call),
            Ast::List(list) => self.list(list),
            Ast::Map(map) => self.map(map),
            Ast::Comprehension(fold) => self.fold(fold),
            Ast::Struct(literal) => self.structure(node.id, literal),
            Ast::Unspecified => Err(Problem::new(node.id, "unexpected expression")),
        }
    }

    fn variable(&mut self, name: &str) -> Option<Checked<'n>> {
        let found = self.scope.iter().rev().find(|known| known.name == name)?;
        if let Some(used) = self.used.get_mut(found.slot) {
            *used = true;
        }
        self.deepest = self.deepest.max(found.depth);
        Some(Checked {
            expr: match found.depth {
                0 => Expr::Var(found.slot),
                _ => Expr::Computed(found.slot),
            },
            ty: found.ty.clone(),
            size: found.size.clone(),
            cost: SELECT,
        })
    }

    /// Returns the variable of a name with a dot, unless a loop has a variable of the name before the dot.
    fn member(&mut self, name: &str) -> Option<Checked<'n>> {
        let (base, _) = name.split_once('.')?;
        let newest = self.scope.iter().rev();
        let mut newest = newest.filter(|known| known.name == name || known.name == base);
        match newest.next()?.name == name {
            true => self.variable(name),
            false => None,
        }
    }

    /// Returns the variable or the type of a name with a dot.
    fn dotted(&mut self, name: &str) -> Option<Checked<'n>> {
        self.member(name).or_else(|| type_named(name))
    }

    fn ident(&mut self, id: u64, name: &str) -> Outcome<'n> {
        let found = self.variable(name).or_else(|| type_named(name));
        found.ok_or_else(|| undeclared(id, name))
    }

    fn select(&mut self, node: &IdedExpr, select: &SelectExpr) -> Outcome<'n> {
        if let Some(base) = qualified(&select.operand)
            && let Some(found) = self.dotted(&format!("{base}.{}", select.field))
        {
            return Ok(match select.test {
                true => computed(Expr::Const(Val::Bool(true)), Type::Bool, 0),
                false => found,
            });
        }
        let kind = match select.test {
            true => SelectKind::Presence,
            false => SelectKind::Value,
        };
        let operand = self.check(&select.operand)?;
        selected(node.id, operand, &select.field, kind)
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Outcome<'n> {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_AND, [a, b]) => {
                self.logical(id, operators::LOGICAL_AND, a, b, Expr::And)
            }
            (operators::LOGICAL_OR, [a, b]) => {
                self.logical(id, operators::LOGICAL_OR, a, b, Expr::Or)
            }
            (operators::CONDITIONAL, [test, yes, no]) => self.conditional(id, [test, yes, no]),
            (operators::NOT_STRICTLY_FALSE, [value]) => {
                let value = self.check(value)?;
                let cost = value.cost + 1;
                Ok(computed(
                    Expr::NotFalse(Box::new(value.expr)),
                    Type::Bool,
                    cost,
                ))
            }
            (operators::OPT_SELECT, [operand, field]) => {
                let operand = self.check(operand)?;
                let Ast::Literal(LiteralValue::String(field)) = &field.expr else {
                    return Err(Problem::new(id, "unsupported optional field selection"));
                };
                selected(id, operand, field.inner(), SelectKind::Optional)
            }
            (INSERT, [accu, entry @ ..]) => self.insert(id, accu, entry),
            (operators::ADD, [accu, item]) => match self.append(accu, item)? {
                Some(appended) => Ok(appended),
                None => self.function(id, call),
            },
            _ => self.function(id, call),
        }
    }

    fn logical(
        &mut self,
        id: u64,
        name: &str,
        a: &IdedExpr,
        b: &IdedExpr,
        make: fn(Box<[Expr; 2]>) -> Expr,
    ) -> Outcome<'n> {
        let (a, b) = (self.check(a)?, self.check(b)?);
        if !is_bool(&a.ty) || !is_bool(&b.ty) {
            return Err(no_overload(id, name, &[&a.ty, &b.ty], false));
        }
        let cost = a.cost.saturating_add(b.cost);
        Ok(computed(make(Box::new([a.expr, b.expr])), Type::Bool, cost))
    }

    fn conditional(&mut self, id: u64, parts: [&IdedExpr; 3]) -> Outcome<'n> {
        let [test, yes, no] = parts.map(|part| self.check(part));
        let (test, yes, no) = (test?, yes?, no?);
        let joined = yes.ty.clone().join(no.ty.clone());
        let (true, Some(ty)) = (is_bool(&test.ty), joined) else {
            let types = [&test.ty, &yes.ty, &no.ty];
            return Err(no_overload(id, operators::CONDITIONAL, &types, false));
        };
        Ok(Checked {
            ty,
            size: yes.size.larger(no.size),
            cost: test.cost.saturating_add(yes.cost.max(no.cost)),
            expr: Expr::Cond(Box::new([test.expr, yes.expr, no.expr])),
        })
    }

    fn function(&mut self, id: u64, call: &CallExpr) -> Outcome<'n> {
        // A receiver may be the first part of a name: `sets.contains(a, b)`.
        let prefix = call.target.as_deref().and_then(qualified);
        let prefix = prefix.filter(|name| self.scope.iter().all(|known| known.name != *name));
        let full = prefix.map(|prefix| format!("{prefix}.{}", call.func_name));
        let found = full.as_deref().and_then(library::find);
        let (function, target) = match found.filter(|found| self.knows(found)) {
            Some(function) => (Some(function), None),
            None => (library::find(&call.func_name), call.target.as_deref()),
        };
        let Some(function) = function else {
            if let Some(target) = target {
                self.check(target)?;
            }
            return Err(undeclared(id, &call.func_name));
        };
        let was_mixed = self.is_mixed;
        self.is_mixed = was_mixed || function.name == "format";
        let args = target.into_iter().chain(&call.args);
        let args: Result<Vec<_>, _> = args.map(|arg| self.check(arg)).collect();
        self.is_mixed = was_mixed;
        let mut args = args?;
        calls::literals(function, &mut args).map_err(|text| Problem::new(id, text))?;
        let root = self.scope.first().map_or(0, |root| root.size.max());
        calls::resolve(id, function, target.is_some(), args, root)
    }

    /// Returns the type of the items of a list, with one more item.
    fn homogeneous(&self, id: u64, known: Type<'n>, found: Type<'n>) -> Result<Type<'n>, Problem> {
        match known.clone().join(found.clone()) {
            Some(joined) => Ok(joined),
            None if self.is_mixed => Ok(Type::Dyn),
            None => {
                let text = format!("expected type '{known}' but found '{found}'");
                Err(Problem::new(id, text))
            }
        }
    }

    fn list(&mut self, list: &ListExpr) -> Outcome<'n> {
        let mut ty = Type::Param('_');
        let mut item_size = Size::Of(0, None);
        let (mut items, mut cost) = (Vec::new(), LIST);
        for (index, element) in list.elements.iter().enumerate() {
            let is_optional = list.optional_indices.contains(&index);
            let checked = self.check(element)?;
            let found = match (is_optional, checked.ty) {
                (true, Type::Optional(inner)) => *inner,
                (_, ty) => ty,
            };
            ty = self.homogeneous(element.id, ty, found)?;
            item_size = item_size.larger(checked.size);
            cost = cost.saturating_add(checked.cost);
            items.push((checked.expr, is_optional));
        }
        Ok(Checked {
            size: Size::list(items.len() as u64, item_size),
            expr: Expr::List(items),
            ty: Type::list(ty),
            cost,
        })
    }

    fn map(&mut self, map: &MapExpr) -> Outcome<'n> {
        let (mut key_type, mut value_type) = (Type::Param('_'), Type::Param('_'));
        let mut value_size = Size::Of(0, None);
        let (mut entries, mut cost) = (Vec::new(), MAP);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            let (key, value) = (self.check(&entry.key)?, self.check(&entry.value)?);
            let found = match (entry.optional, value.ty) {
                (true, Type::Optional(inner)) => *inner,
                (_, ty) => ty,
            };
            key_type = self.homogeneous(entry.key.id, key_type, key.ty)?;
            value_type = self.homogeneous(entry.value.id, value_type, found)?;
            value_size = value_size.larger(value.size);
            cost = cost.saturating_add(key.cost).saturating_add(value.cost);
            entries.push((key.expr, value.expr, entry.optional));
        }
        Ok(Checked {
            size: Size::list(entries.len() as u64, value_size),
            expr: Expr::Map(entries),
            ty: Type::Map(Box::new(key_type), Box::new(value_type)),
            cost,
        })
    }
}

fn undeclared(id: u64, name: &str) -> Problem {
    Problem::new(
        id,
        format!("undeclared reference to '{name}' (in container '')"),
    )
}

fn no_overload(id: u64, name: &str, types: &[&Type<'_>], is_member: bool) -> Problem {
    let names: Vec<_> = types.iter().map(ToString::to_string).collect();
    let signature = match (is_member, names.split_first()) {
        (true, Some((receiver, rest))) => format!("{receiver}.({})", rest.join(", ")),
        _ => format!("({})", names.join(", ")),
    };
    let text = format!("found no matching overload for '{name}' applied to '{signature}'");
    Problem::new(id, text)
}

fn is_bool(ty: &Type<'_>) -> bool {
    matches!(ty, Type::Bool | Type::Dyn | Type::Param(_))
}

fn computed<'n>(expr: Expr, ty: Type<'n>, cost: u64) -> Checked<'n> {
    Checked {
        expr,
        ty,
        size: Size::ONE,
        cost,
    }
}

fn constant<'n>(literal: &LiteralValue) -> Checked<'n> {
    let (value, ty) = match literal {
        LiteralValue::Boolean(flag) => (Val::Bool(*flag.inner()), Type::Bool),
        LiteralValue::Bytes(bytes) => (Val::Bytes(bytes.inner().into()), Type::Bytes),
        LiteralValue::Double(double) => (Val::Double(*double.inner()), Type::Double),
        LiteralValue::Int(int) => (Val::Int(*int.inner()), Type::Int),
        LiteralValue::Null => (Val::Null, Type::Null),
        LiteralValue::String(text) => (Val::from(text.inner()), Type::String),
        LiteralValue::UInt(int) => (Val::Uint(*int.inner()), Type::Uint),
    };
    Checked {
        size: Size::Of(value.size(), None),
        expr: Expr::Const(value),
        ty,
        cost: 0,
    }
}

/// Returns the type that a name stands for.
fn type_named<'n>(name: &str) -> Option<Checked<'n>> {
    const NAMES: [&str; 20] = [
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
        "type",
        "optional_type",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
        "net.IP",
        "net.CIDR",
        "kubernetes.URL",
        "kubernetes.Quantity",
        "kubernetes.Semver",
        "kubernetes.NamedFormat",
        "object",
    ];
    let name = NAMES.iter().find(|known| **known == name)?;
    Some(computed(Expr::Const(Val::Type(name)), Type::Kind, SELECT))
}

/// Returns the name that a chain of selections spells.
fn qualified(node: &IdedExpr) -> Option<String> {
    match &node.expr {
        Ast::Ident(name) => Some(name.clone()),
        Ast::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified(&select.operand)?, select.field))
        }
        _ => None,
    }
}

/// Checks the selection of a field.
fn selected<'n>(id: u64, operand: Checked<'n>, field: &str, kind: SelectKind) -> Outcome<'n> {
    let (inner, chained) = match operand.ty {
        Type::Optional(inner) => (*inner, true),
        other => (other, false),
    };
    let (ty, size) = match &inner {
        Type::Object(object) => {
            let unknown = || Problem::new(id, format!("undefined field '{field}'"));
            let (node, ty) = object.field(field).ok_or_else(unknown)?;
            (ty, Size::Node(node))
        }
        Type::Struct(name) => {
            let unknown = || Problem::new(id, format!("undefined field '{field}'"));
            (
                patch::field(name, field).ok_or_else(unknown)?,
                Size::UNKNOWN,
            )
        }
        Type::Map(_, value) => ((**value).clone(), operand.size.item()),
        Type::Dyn | Type::Param(_) => (Type::Dyn, Size::UNKNOWN),
        other => {
            let text = format!("type '{other}' does not support field selection");
            return Err(Problem::new(id, text));
        }
    };
    let is_test = kind == SelectKind::Presence;
    Ok(Checked {
        expr: Expr::Select(Box::new(Select {
            operand: operand.expr,
            field: Val::from(field),
            kind,
        })),
        ty: match kind {
            SelectKind::Presence => Type::Bool,
            SelectKind::Value if !chained => ty,
            _ => Type::optional(ty),
        },
        size: if is_test { Size::ONE } else { size },
        cost: operand.cost + if is_test { 0 } else { SELECT },
    })
}
