//! Objects against rules.

use std::cell::OnceCell;
use std::rc::Rc;

use serde_json::Value;
use setpoint_cel::{self as cel, Activation, Failure, Meter, Node, Rule};

use super::Tree;
use super::compile::Compiled;
use crate::path::Path;
use crate::ratchet::Correlated;
use crate::violation::{Kind, Violation};

/// The longest message that an expression may make, in bytes.
const MAX_MESSAGE: usize = 5 << 10;
/// The errors that are kept of one object.
const MAX_ERRORS: usize = 1_000;

/// The remaining cost that the rules of one object, or of the defaults of one schema, may have together.
pub(crate) struct Budget(Meter);

impl Budget {
    pub(crate) fn new() -> Self {
        Self(Meter::default())
    }
}

/// Evaluates the rules of a value. `old` is the value that it replaces; with `forgiven`, what rules say of parts that
/// did not change is no error, and is put there.
pub(crate) fn validate(
    tree: &Tree,
    node: &Node,
    new: &Value,
    old: Option<&Value>,
    forgiven: Option<&mut Vec<Violation>>,
    path: &Path<'_>,
    budget: &mut Budget,
) -> Vec<Violation> {
    let ratchet = Ratchet {
        current: old
            .filter(|_| forgiven.is_some())
            .map(|old| Seen::new(Correlated::new(new, old, node))),
        parent: None,
    };
    let mut validator = Validator {
        meter: &mut budget.0,
        found: Vec::new(),
        forgiven,
    };
    // The budget may end it: what was found is reported then.
    let _ = validator.value(tree, node, new, old, &ratchet, path);
    validator.found
}

/// A value and the one that it replaces, and whether they are equal, once that is known.
#[derive(Clone)]
struct Seen<'a>(Rc<(Correlated<'a>, OnceCell<bool>)>);

impl<'a> Seen<'a> {
    fn new(correlated: Correlated<'a>) -> Self {
        Self(Rc::new((correlated, OnceCell::new())))
    }

    fn is_unchanged(&self) -> bool {
        *self.0.1.get_or_init(|| self.0.0.is_unchanged())
    }
}

/// The value that a value replaces, or else the one that the nearest value around it does.
#[derive(Clone, Default)]
struct Ratchet<'a> {
    current: Option<Seen<'a>>,
    parent: Option<Seen<'a>>,
}

impl<'a> Ratchet<'a> {
    fn forgives(&self) -> bool {
        let nearest = self.current.as_ref().or(self.parent.as_ref());
        nearest.is_some_and(Seen::is_unchanged)
    }

    fn field(&self, name: &str) -> Self {
        match &self.current {
            None => self.clone(),
            // Both objects are of one type and version after conversion: a change of these fields cannot be seen.
            Some(_) if self.parent.is_none() && ["apiVersion", "kind"].contains(&name) => {
                Self::default()
            }
            Some(seen) => Self {
                current: seen.0.0.field(name).map(Seen::new),
                parent: Some(seen.clone()),
            },
        }
    }

    fn item(&self, item: Option<Correlated<'a>>) -> Self {
        match &self.current {
            None => self.clone(),
            Some(seen) => Self {
                current: item.map(Seen::new),
                parent: Some(seen.clone()),
            },
        }
    }
}

/// No further rule may be evaluated.
struct Stop;

struct Validator<'m> {
    meter: &'m mut Meter,
    found: Vec<Violation>,
    forgiven: Option<&'m mut Vec<Violation>>,
}

impl Validator<'_> {
    fn value(
        &mut self,
        tree: &Tree,
        node: &Node,
        new: &Value,
        old: Option<&Value>,
        ratchet: &Ratchet<'_>,
        path: &Path<'_>,
    ) -> Result<(), Stop> {
        // A rule is for values that are there: those of a nullable one belong to what is around it.
        if new.is_null() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        self.rules(tree, node, new, old, ratchet, path)?;
        match new {
            Value::Array(_) => self.items(tree, node, new, old, ratchet, path),
            Value::Object(_) => self.fields(tree, node, new, old, ratchet, path),
            _ => Ok(()),
        }
    }

    fn items(
        &mut self,
        tree: &Tree,
        node: &Node,
        new: &Value,
        old: Option<&Value>,
        ratchet: &Ratchet<'_>,
        path: &Path<'_>,
    ) -> Result<(), Stop> {
        let (Some(tree), Some(schema), Some(items)) = (&tree.items, &node.items, new.as_array())
        else {
            return Ok(());
        };
        let correlated = old.map(|old| Correlated::new(new, old, node));
        let correlated = correlated.as_ref().and_then(Correlated::list);
        let seen = ratchet.current.as_ref().and_then(|seen| seen.0.0.list());
        for (index, item) in items.iter().enumerate() {
            let old = correlated.as_ref().and_then(|list| list.item(index));
            let ratchet = ratchet.item(seen.as_ref().and_then(|list| list.item(index)));
            let old = old.map(|old| old.old());
            self.value(tree, schema, item, old, &ratchet, &path.index(index))?;
        }
        Ok(())
    }

    fn fields(
        &mut self,
        tree: &Tree,
        node: &Node,
        new: &Value,
        old: Option<&Value>,
        ratchet: &Ratchet<'_>,
        path: &Path<'_>,
    ) -> Result<(), Stop> {
        for (name, value) in new.as_object().into_iter().flatten() {
            let old = old.and_then(|old| old.get(name));
            if let (Some(tree), Some(schema)) =
                (tree.properties.get(name), node.properties.get(name))
            {
                let ratchet = ratchet.field(name);
                self.value(tree, schema, value, old, &ratchet, &path.field(name))?;
            } else if let (Some(tree), Some(schema)) = (&tree.values, node.values()) {
                let ratchet = ratchet.field(name);
                self.value(tree, schema, value, old, &ratchet, &path.key(name))?;
            }
        }
        Ok(())
    }

    fn rules(
        &mut self,
        tree: &Tree,
        node: &Node,
        new: &Value,
        old: Option<&Value>,
        ratchet: &Ratchet<'_>,
        path: &Path<'_>,
    ) -> Result<(), Stop> {
        let place = Place { node, path };
        if let Some(failure) = &tree.failure {
            self.push(place.invalid(&format!("rule compiler initialization error: {failure}")))?;
            return Ok(());
        }
        if tree.rules.is_empty() {
            return Ok(());
        }
        if self.meter.is_spent() {
            self.push(place.invalid(OUT_OF_BUDGET))?;
            return Err(Stop);
        }
        let activation = Activation::new(new, old, node, tree.is_resource);
        for (rule, compiled) in &tree.rules {
            if let Some(compiled) = compiled {
                self.rule(rule, compiled, &activation, new, ratchet, &place)?;
            }
        }
        Ok(())
    }

    fn rule(
        &mut self,
        rule: &Rule,
        compiled: &Compiled,
        activation: &Activation<'_>,
        new: &Value,
        ratchet: &Ratchet<'_>,
        place: &Place<'_>,
    ) -> Result<(), Stop> {
        let program = match &compiled.rule {
            Ok(program) => program,
            Err(error) => {
                return self.push(place.invalid(&format!("rule compile error: {error}")));
            }
        };
        let optional = rule.optional_old_self == Some(true);
        if program.uses_old() && !activation.has_old() && !optional {
            return Ok(());
        }
        let detail = match program.eval(activation, optional, self.meter) {
            Ok(cel::Value::Bool(true)) => return Ok(()),
            Ok(_) => self.message(rule, compiled, activation, optional, place)?,
            Err(failure) => return self.failure(&failure, rule, place),
        };
        let refused = place.refused(rule, compiled, new, detail);
        match &mut self.forgiven {
            Some(forgiven) if !program.uses_old() && ratchet.forgives() => {
                if forgiven.len() < MAX_ERRORS {
                    forgiven.push(refused);
                }
                Ok(())
            }
            _ => self.push(refused),
        }
    }

    fn failure(&mut self, failure: &Failure, rule: &Rule, place: &Place<'_>) -> Result<(), Stop> {
        let shown = shown(rule);
        let detail = match failure {
            Failure::Error(error) => format!("{error} evaluating rule: {shown}"),
            Failure::NoOverload => format!(
                "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {shown}"
            ),
            Failure::CallLimit => format!(
                "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
            ),
            Failure::Budget => OUT_OF_BUDGET.to_owned(),
        };
        self.push(place.invalid(&detail))?;
        match failure.is_final() {
            true => Err(Stop),
            false => Ok(()),
        }
    }

    /// Returns the message of a rule that does not hold.
    fn message(
        &mut self,
        rule: &Rule,
        compiled: &Compiled,
        activation: &Activation<'_>,
        optional: bool,
        place: &Place<'_>,
    ) -> Result<String, Stop> {
        let made = match &compiled.message {
            Some(Ok(program)) => program.eval(activation, optional, self.meter),
            _ => return Ok(default_message(rule)),
        };
        let refused = match made {
            Ok(cel::Value::String(text)) => {
                let text = text.trim();
                let fits = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
                return Ok(match fits {
                    true => text.to_owned(),
                    false => default_message(rule),
                });
            }
            Err(Failure::CallLimit) => format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                setpoint_cel::go::quote(&rule.message_expression)
            ),
            Err(Failure::Budget) => "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run".to_owned(),
            _ => return Ok(default_message(rule)),
        };
        self.push(place.invalid(&refused))?;
        Err(Stop)
    }

    fn push(&mut self, violation: Violation) -> Result<(), Stop> {
        self.found.push(violation);
        match self.found.len() < MAX_ERRORS {
            true => Ok(()),
            false => Err(Stop),
        }
    }
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The position of a rule.
struct Place<'a> {
    node: &'a Node,
    path: &'a Path<'a>,
}

impl Place<'_> {
    /// Returns an error of the rule itself. It shows the type of the value.
    fn invalid(&self, detail: &str) -> Violation {
        Violation::invalid(self.path, self.node.schema_type.as_str(), detail)
    }

    /// Returns the error of a value that a rule refuses.
    fn refused(&self, rule: &Rule, compiled: &Compiled, new: &Value, detail: String) -> Violation {
        let path = match compiled.field_path.as_str() {
            "" => *self.path,
            name => self.path.field(name),
        };
        // Objects and lists are not shown: they may be large.
        let is_large = ["object", "array"].contains(&self.node.schema_type.as_str());
        let value = (!is_large).then(|| new.clone());
        match rule.reason.as_deref() {
            Some("FieldValueForbidden") => Violation::forbidden(&path, detail),
            Some("FieldValueRequired") => Violation::required(&path, detail),
            Some("FieldValueDuplicate") => Violation::new(Kind::Duplicate, &path, value, ""),
            _ => Violation::new(Kind::Invalid, &path, value, detail),
        }
    }
}

fn default_message(rule: &Rule) -> String {
    match rule.message.is_empty() {
        true => format!("failed rule: {}", shown(rule)),
        false => rule.message.trim().to_owned(),
    }
}

/// Returns what errors call a rule.
fn shown(rule: &Rule) -> &str {
    match rule.message.is_empty() {
        true => rule.rule.trim(),
        false => rule.message.trim(),
    }
}
