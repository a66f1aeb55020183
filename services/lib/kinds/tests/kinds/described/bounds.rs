//! Bounds that descriptions state are those that the gateway checks.

use serde_json::{Value, json};

use super::failures;
use super::objects::{self, Errors};
use super::paths::{self, Path};
use super::statements::{self, Bound, Unit};

#[test]
fn stated_bounds_are_those_that_the_gateway_checks() {
    let failures = failures(statements::bound, |path, bound| {
        let sides = [
            bound.least.map(|least| (least, least - 1)),
            bound.most.map(|most| (most, most + 1)),
        ];
        let sides = || sides.into_iter().flatten();
        let outcomes = objects::examples(path.kind).into_iter();
        let mut outcomes =
            outcomes.map(|example| sides().try_for_each(|side| check(path, &example, bound, side)));
        let first = outcomes.next().expect("every kind has an example");
        outcomes.fold(first, Result::or)
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Checks that the value `outside` of a bound has an error that the value `inside` does not have.
fn check(
    path: &Path,
    example: &Value,
    bound: &Bound,
    (inside, outside): (i64, i64),
) -> Result<(), String> {
    let accepted = errors_at(path, example, sized(path, bound.unit, inside));
    // Zero counts as left out where the field has a default.
    let tried = [outside, -1]
        .into_iter()
        .filter(|value| *value == outside || outside == 0);
    for outside in tried.filter(|value| *value >= 0 || bound.unit == Unit::Value) {
        let refused = errors_at(path, example, sized(path, bound.unit, outside));
        if refused
            .difference(&accepted)
            .any(|error| is_about_size(error, bound.unit))
        {
            return Ok(());
        }
    }
    Err(format!(
        "{outside} is not refused, or {inside} is: {accepted:?}"
    ))
}

/// Returns whether an error is about the number itself, and not about what a value of that size contains.
fn is_about_size((_, message): &(String, String), unit: Unit) -> bool {
    unit == Unit::Value
        || ["Too", "more than", "at most", "at least", "equired"]
            .iter()
            .any(|word| message.contains(word))
}

fn sized(path: &Path, unit: Unit, size: i64) -> Value {
    let count = usize::try_from(size).unwrap_or_default();
    match unit {
        Unit::Value => json!(size),
        Unit::Characters => json!("a".repeat(count)),
        Unit::Entries => {
            let [first, _] = paths::values(path.field());
            json!(vec![first[0].clone(); count])
        }
    }
}

/// Returns the errors at the field itself, of a creation or of a write of the status.
fn errors_at(path: &Path, example: &Value, value: Value) -> Errors {
    let object = path.put(example, value);
    let errors = match path.is_of_status() {
        true => objects::errors_of_update(path.kind, "status", example, &object),
        false => objects::errors_of_creation(path.kind, &object),
    };
    let shown = path.shown();
    let errors = errors.into_iter();
    // A value that the type cannot have is refused without a path.
    errors
        .filter(|(field, _)| *field == shown || field.is_empty())
        .collect()
}
