//! The evaluation of expressions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::computed::Computed;
use super::expr::{Expr, Fold, Select, SelectKind};
use super::library;
use super::library::cost::{LIST, STRUCT};
use super::meter::{Failure, Meter, scan};
use super::patch::Struct;
use super::values::{Key, List, Map, Val};

const MAP: u64 = 30;

pub(super) type Outcome<'a> = Result<Val<'a>, Failure>;

/// The values of the variables of an expression. A variable may be an error, which `&&` and `||` can absorb.
pub(super) struct Frame<'a, 'm> {
    pub(super) slots: Vec<Outcome<'a>>,
    pub(super) meter: &'m mut Meter,
    /// The variables that are computed when they are read.
    pub(super) computed: Option<&'m Computed<'a>>,
}

impl<'a> Frame<'a, '_> {
    pub(super) fn eval(&mut self, expr: &Expr) -> Outcome<'a> {
        self.meter.step()?;
        match expr {
            Expr::Const(value) => Ok(value.clone()),
            Expr::Var(slot) => {
                self.meter.spend(1)?;
                self.slots.get(*slot).cloned().unwrap_or_else(unset)
            }
            Expr::Computed(slot) => {
                self.meter.spend(1)?;
                let computed = self
                    .computed
                    .map(|computed| computed.get(*slot, self.meter));
                computed.unwrap_or_else(unset)
            }
            Expr::Select(select) => self.select(select),
            Expr::Call { overloads, args } => self.call(overloads, args),
            Expr::And(parts) => self.logical(parts, false),
            Expr::Or(parts) => self.logical(parts, true),
            Expr::Cond(parts) => {
                let [test, yes, no] = &**parts;
                match self.eval(test)? {
                    Val::Bool(true) => self.eval(yes),
                    Val::Bool(false) => self.eval(no),
                    _ => Err(Failure::NoOverload),
                }
            }
            Expr::NotFalse(inner) => {
                self.meter.spend(1)?;
                match self.eval(inner) {
                    Ok(Val::Bool(flag)) => Ok(Val::Bool(flag)),
                    Err(failure) if failure.is_final() => Err(failure),
                    _ => Ok(Val::Bool(true)),
                }
            }
            Expr::List(items) => self.list(items),
            Expr::Map(entries) => self.map(entries),
            Expr::Struct(name, fields) => self.structure(name, fields),
            Expr::Fold(fold) => self.fold(fold),
            Expr::Append(slot, item) => self.append(*slot, item),
            Expr::Insert(slot, entry) => self.insert(*slot, entry),
        }
    }

    fn select(&mut self, select: &Select) -> Outcome<'a> {
        let operand = self.eval(&select.operand)?;
        // As upstream, `has` costs what its operand does.
        if select.kind != SelectKind::Presence {
            self.meter.spend(1)?;
        }
        let (operand, chained) = match operand {
            Val::Optional(None) => {
                return Ok(match select.kind {
                    SelectKind::Presence => Val::Bool(false),
                    _ => Val::Optional(None),
                });
            }
            Val::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, false),
        };
        let found = match &operand {
            Val::Map(map) => map.get(&select.field)?,
            Val::Struct(object) => object.select(&select.field, select.kind),
            _ => return Err(Failure::NoOverload),
        };
        match select.kind {
            SelectKind::Presence => Ok(Val::Bool(found.is_some())),
            SelectKind::Value if !chained => found.ok_or_else(|| {
                let name = match &select.field {
                    Val::String(name) => (**name).to_owned(),
                    _ => String::new(),
                };
                Failure::Error(format!("no such key: {name}"))
            }),
            _ => Ok(found.map_or(Val::Optional(None), optional)),
        }
    }

    fn call(&mut self, overloads: &[&'static library::Overload], args: &[Expr]) -> Outcome<'a> {
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            values.push(self.eval(arg)?);
        }
        library::call(overloads, &values, self.meter)
    }

    /// Evaluates `&&` (`decisive`: false) or `||` (true): one operand with the decisive value is enough, whatever the
    /// other one is.
    fn logical(&mut self, parts: &[Expr; 2], decisive: bool) -> Outcome<'a> {
        let [first, second] = parts;
        let first = self.eval(first);
        match &first {
            Ok(Val::Bool(flag)) if *flag == decisive => return first,
            Err(failure) if failure.is_final() => return first,
            _ => {}
        }
        let second = self.eval(second);
        match (&first, &second) {
            (_, Ok(Val::Bool(flag))) if *flag == decisive => second,
            (_, Err(failure)) if failure.is_final() => second,
            (Err(_), _) => first,
            (_, Err(_)) => second,
            (Ok(Val::Bool(_)), Ok(Val::Bool(_))) => second,
            _ => Err(Failure::NoOverload),
        }
    }

    fn list(&mut self, items: &[(Expr, bool)]) -> Outcome<'a> {
        self.meter.spend(LIST)?;
        let mut values = Vec::with_capacity(items.len());
        for (item, is_optional) in items {
            match (self.eval(item)?, is_optional) {
                (Val::Optional(None), true) => {}
                (Val::Optional(Some(inner)), true) => values.push((*inner).clone()),
                (value, _) => values.push(value),
            }
        }
        Ok(Val::from(values))
    }

    fn map(&mut self, entries: &[(Expr, Expr, bool)]) -> Outcome<'a> {
        self.meter.spend(MAP)?;
        let mut made = BTreeMap::new();
        for (key, value, is_optional) in entries {
            let key = key_of(&self.eval(key)?)?;
            let value = match (self.eval(value)?, is_optional) {
                (Val::Optional(None), true) => continue,
                (Val::Optional(Some(inner)), true) => (*inner).clone(),
                (value, _) => value,
            };
            if made.insert(key, value).is_some() {
                return Err(Failure::error("Failed with repeated key"));
            }
        }
        Ok(Val::Map(Map::Made(Arc::new(made))))
    }

    fn structure(&mut self, name: &Arc<str>, fields: &[(Arc<str>, Expr, bool)]) -> Outcome<'a> {
        self.meter.spend(STRUCT)?;
        let mut made = BTreeMap::new();
        for (field, value, is_optional) in fields {
            let value = match (self.eval(value)?, is_optional) {
                (Val::Optional(None), true) => continue,
                (Val::Optional(Some(inner)), true) => (*inner).clone(),
                (_, true) => {
                    let text = format!(
                        "cannot initialize optional entry '{field}' from non-optional value"
                    );
                    return Err(Failure::Error(text));
                }
                (value, false) => value,
            };
            made.insert(field.clone(), value);
        }
        Ok(Val::Struct(Struct::new(name.clone(), made)))
    }

    fn fold(&mut self, fold: &Fold) -> Outcome<'a> {
        let range = self.eval(&fold.range)?;
        let init = self.eval(&fold.init);
        self.set(fold.accu, init);
        match &range {
            Val::List(list) => {
                for index in 0..list.len() {
                    let item = list.get(index).unwrap_or_else(unset);
                    let proceeds = match fold.second {
                        None => self.pass(fold, item, None)?,
                        Some(_) => self.pass(fold, Ok(Val::Int(index as i64)), Some(item))?,
                    };
                    if !proceeds {
                        break;
                    }
                }
            }
            Val::Map(map) => {
                self.meter.spend(scan(map.len() as u64))?;
                for key in map.keys() {
                    let value = || map.get(&key).map(|value| value.unwrap_or(Val::Null));
                    let value = fold.second.map(|_| value());
                    if !self.pass(fold, Ok(key), value)? {
                        break;
                    }
                }
            }
            _ => return Err(Failure::NoOverload),
        }
        self.eval(&fold.result)
    }

    /// Makes one pass of a loop. Returns whether there is to be another.
    fn pass(
        &mut self,
        fold: &Fold,
        first: Outcome<'a>,
        second: Option<Outcome<'a>>,
    ) -> Result<bool, Failure> {
        self.set(fold.variable, first);
        if let (Some(slot), Some(value)) = (fold.second, second) {
            self.set(slot, value);
        }
        match self.eval(&fold.cond) {
            Ok(Val::Bool(false)) => return Ok(false),
            Err(failure) if failure.is_final() => return Err(failure),
            _ => {}
        }
        let value = self.eval(&fold.step);
        if let Err(failure) = &value
            && failure.is_final()
        {
            return Err(failure.clone());
        }
        self.set(fold.accu, value);
        Ok(true)
    }

    fn set(&mut self, slot: usize, value: Outcome<'a>) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = value;
        }
    }

    /// Takes the value of a variable that is replaced by the result of the step.
    fn take(&mut self, slot: usize) -> Outcome<'a> {
        self.meter.spend(1)?;
        match self.slots.get_mut(slot) {
            Some(place) => std::mem::replace(place, Ok(Val::Null)),
            None => unset(),
        }
    }

    fn append(&mut self, slot: usize, item: &Expr) -> Outcome<'a> {
        let item = self.eval(item)?;
        let Val::List(List::Made(mut items)) = self.take(slot)? else {
            return Err(Failure::NoOverload);
        };
        if Arc::get_mut(&mut items).is_none() {
            self.meter.spend(items.len() as u64)?;
        }
        Arc::make_mut(&mut items).push(item);
        Ok(Val::List(List::Made(items)))
    }

    fn insert(&mut self, slot: usize, entry: &[Expr]) -> Outcome<'a> {
        let mut added = Vec::new();
        match entry {
            [key, value] => added.push((key_of(&self.eval(key)?)?, self.eval(value)?)),
            [entries] => {
                let Val::Map(map) = self.eval(entries)? else {
                    return Err(Failure::NoOverload);
                };
                self.meter.spend(map.len() as u64)?;
                for key in map.keys() {
                    let value = map.get(&key)?.unwrap_or(Val::Null);
                    added.push((key_of(&key)?, value));
                }
            }
            _ => return Err(Failure::NoOverload),
        }
        let Val::Map(Map::Made(mut made)) = self.take(slot)? else {
            return Err(Failure::NoOverload);
        };
        if Arc::get_mut(&mut made).is_none() {
            self.meter.spend(made.len() as u64)?;
        }
        let entries = Arc::make_mut(&mut made);
        for (key, value) in added {
            if entries.insert(key, value).is_some() {
                return Err(Failure::error("insert failed: key already exists"));
            }
        }
        Ok(Val::Map(Map::Made(made)))
    }
}

pub(super) fn unset<'a>() -> Outcome<'a> {
    Err(Failure::error("no such attribute"))
}

fn key_of(value: &Val<'_>) -> Result<Key, Failure> {
    let unsupported = || Failure::Error(format!("unsupported key type: {}", value.type_name()));
    Key::of(value).ok_or_else(unsupported)
}

fn optional(value: Val<'_>) -> Val<'_> {
    match value {
        same @ Val::Optional(_) => same,
        other => Val::some(other),
    }
}
