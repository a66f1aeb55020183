//! Bounds of numbers.

use setpoint_cel::Node;
use setpoint_cel::go::{self, Num};

use super::outcome::Outcome;
use super::{INTEGER, NUMBER, format};
use crate::path::Path;
use crate::violation::Violation;

pub(super) fn check(node: &Node, number: Num, path: &Path<'_>) -> Outcome {
    let mut outcome = Outcome::counted();
    let range = Range::of(node);
    if !range.contains(number) {
        outcome.fail(range.error("Checked", path));
    }
    let bounds = &node.bounds;
    if let Some(factor) = bounds.multiple_of {
        outcome.merge(multiple(number, factor, path));
    }
    if let Some(minimum) = bounds.minimum {
        let bound = Bound {
            limit: minimum,
            exclusive: bounds.exclusive_minimum,
        };
        outcome.merge(bound.check(number, path, false));
    }
    if let Some(maximum) = bounds.maximum {
        let bound = Bound {
            limit: maximum,
            exclusive: bounds.exclusive_maximum,
        };
        outcome.merge(bound.check(number, path, true));
    }
    outcome
}

/// The numbers of a type and format.
struct Range<'a> {
    schema_type: &'a str,
    format: &'a str,
}

impl<'a> Range<'a> {
    fn of(node: &'a Node) -> Self {
        let typed = !node.int_or_string && [INTEGER, NUMBER].contains(&node.schema_type.as_str());
        Range {
            schema_type: if typed { &node.schema_type } else { "" },
            format: if typed { format::effective(node) } else { "" },
        }
    }

    fn contains(&self, number: Num) -> bool {
        match (self.schema_type, self.format, number) {
            (INTEGER, "int32", Num::Int(int)) => i32::try_from(int).is_ok(),
            (INTEGER, "int32", Num::Float(float)) => float.trunc() == f64::from(float as i32),
            (INTEGER, _, Num::Float(float)) => float.abs() < i64::MAX as f64,
            (NUMBER, "float", number) => number.as_f64().abs() <= f64::from(f32::MAX),
            _ => true,
        }
    }

    fn error(&self, subject: &str, path: &Path<'_>) -> Violation {
        let schema_type = self.schema_type;
        let detail = match self.format {
            "" => {
                format!("{subject} value must be of type {schema_type} (default format) in {path}")
            }
            format => format!(
                "{subject} value must be of type {schema_type} with format {format} in {path}"
            ),
        };
        Violation::invalid(&Path::ROOT, "", detail)
    }
}

struct Bound {
    limit: f64,
    exclusive: bool,
}

impl Bound {
    /// Integers are compared with the limit as an integer, as upstream does.
    fn check(&self, number: Num, path: &Path<'_>, is_maximum: bool) -> Outcome {
        let order = match number {
            Num::Int(int) => int.cmp(&(self.limit as i64)),
            Num::Float(float) => float.total_cmp(&self.limit),
        };
        let order = if is_maximum { order } else { order.reverse() };
        if order.is_lt() || (order.is_eq() && !self.exclusive) {
            return Outcome::default();
        }
        let words = match (is_maximum, self.exclusive) {
            (true, false) => "less than or equal to",
            (true, true) => "less than",
            (false, false) => "greater than or equal to",
            (false, true) => "greater than",
        };
        let limit = shown(number, self.limit);
        let detail = format!("{path} in body should be {words} {limit}");
        Outcome::failed(Violation::invalid(path, json(number), detail))
    }
}

fn multiple(number: Num, factor: f64, path: &Path<'_>) -> Outcome {
    let (positive, is_multiple) = match number {
        Num::Int(int) => {
            let factor = factor as i64;
            (factor > 0, factor > 0 && int.checked_rem(factor) == Some(0))
        }
        Num::Float(float) => {
            let quotient = if factor < 1.0 {
                1.0 / factor * float
            } else {
                float / factor
            };
            (factor > 0.0, go::is_integer(quotient))
        }
    };
    let shown = shown(number, factor);
    if !positive {
        let detail = format!("factor MultipleOf declared for {path} must be positive: {shown}");
        return Outcome::failed(Violation::invalid(path, factor, detail));
    }
    match is_multiple {
        true => Outcome::default(),
        false => {
            let detail = format!("{path} in body should be a multiple of {shown}");
            Outcome::failed(Violation::invalid(path, json(number), detail))
        }
    }
}

fn shown(number: Num, limit: f64) -> String {
    match number {
        Num::Int(_) => (limit as i64).to_string(),
        Num::Float(_) => go::float(limit),
    }
}

fn json(number: Num) -> serde_json::Value {
    match number {
        Num::Int(int) => int.into(),
        Num::Float(float) => float.into(),
    }
}
