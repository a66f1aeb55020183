//! Evaluates paths.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Condition, Operator, Slice, Step};

/// The maximum number of values that an evaluation visits. Descents within each other would visit some many times.
const VALUES_MAX: usize = 1 << 16;

/// The reason why a path has no results at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Error {
    NotAList,
    OutOfBounds,
    /// A comparison of values of different types, or of several.
    NotComparable,
    TooManyValues,
}

/// Returns the results of a path, in the order of the value; those of objects by name.
pub(super) fn evaluate<'v>(path: &'v [Step], value: &'v Value) -> Result<Vec<&'v Value>, Error> {
    Evaluation { left: VALUES_MAX }.path(path, vec![value])
}

struct Evaluation {
    /// The number of values that may still be visited.
    left: usize,
}

type Values<'v> = Vec<&'v Value>;

impl Evaluation {
    fn path<'v>(&mut self, path: &'v [Step], input: Values<'v>) -> Result<Values<'v>, Error> {
        let mut steps = path.iter();
        steps.try_fold(input, |values, step| self.step(step, values))
    }

    fn step<'v>(&mut self, step: &'v Step, input: Values<'v>) -> Result<Values<'v>, Error> {
        self.visit(input.len())?;
        match step {
            Step::Field(name) => Ok(input.iter().filter_map(|value| value.get(name)).collect()),
            Step::Wildcard => self.all(&input),
            Step::Descent => self.descend(&input),
            Step::Slice(slice) => self.slice(*slice, &input),
            Step::Union(paths) => {
                let results = paths.iter().map(|path| self.path(path, input.clone()));
                Ok(results.collect::<Result<Vec<_>, _>>()?.concat())
            }
            Step::Filter(condition) => self.filter(condition, &input),
            Step::Text(text) => Ok(vec![text]),
            Step::Literal(value) => Ok(vec![value; input.len()]),
        }
    }

    fn visit(&mut self, values: usize) -> Result<(), Error> {
        self.left = self.left.checked_sub(values).ok_or(Error::TooManyValues)?;
        Ok(())
    }

    fn all<'v>(&mut self, input: &[&'v Value]) -> Result<Values<'v>, Error> {
        let mut results = Vec::new();
        for value in input {
            let children = children(value);
            self.visit(children.len())?;
            results.extend(children);
        }
        Ok(results)
    }

    fn descend<'v>(&mut self, input: &[&'v Value]) -> Result<Values<'v>, Error> {
        let mut results = Vec::new();
        // The next value is the last.
        let mut open: Values<'v> = input.iter().rev().copied().collect();
        while let Some(value) = open.pop() {
            let children = children(value);
            self.visit(children.len())?;
            if !children.is_empty() {
                results.push(value);
            }
            open.extend(children.into_iter().rev());
        }
        Ok(results)
    }

    fn slice<'v>(&mut self, slice: Slice, input: &[&'v Value]) -> Result<Values<'v>, Error> {
        let mut results = Vec::new();
        for value in input.iter().filter(|value| !value.is_null()) {
            let list = value.as_array().ok_or(Error::NotAList)?;
            let (start, end) = bounds(slice, list.len())?;
            if start == end {
                break;
            }
            self.visit(end - start)?;
            let step = usize::try_from(slice.step.unwrap_or(1));
            let step = step.ok().filter(|step| *step > 0);
            let step = step.ok_or(Error::OutOfBounds)?;
            results.extend(list[start..end].iter().step_by(step));
        }
        Ok(results)
    }

    fn filter<'v>(
        &mut self,
        condition: &'v Condition,
        input: &[&'v Value],
    ) -> Result<Values<'v>, Error> {
        let mut results = Vec::new();
        for value in input {
            for entry in value.as_array().ok_or(Error::NotAList)? {
                if self.holds(condition, entry)? {
                    results.push(entry);
                }
            }
        }
        Ok(results)
    }

    fn holds<'v>(&mut self, condition: &'v Condition, entry: &'v Value) -> Result<bool, Error> {
        self.visit(1)?;
        let left = self.path(&condition.path, vec![entry]);
        let Some((operator, right)) = &condition.comparison else {
            return match left {
                Err(Error::TooManyValues) => Err(Error::TooManyValues),
                found => Ok(found.is_ok_and(|found| !found.is_empty())),
            };
        };
        let Some(left) = single(&left?)? else {
            return Ok(false);
        };
        let right = self.path(right, vec![entry])?;
        match single(&right)? {
            Some(right) => compare(*operator, left, right),
            None => Ok(false),
        }
    }
}

fn children(value: &Value) -> Values<'_> {
    match value {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(entries) => entries.iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns the range of a slice in a list of this length.
fn bounds(slice: Slice, length: usize) -> Result<(usize, usize), Error> {
    let length = i64::try_from(length).map_err(|_| Error::OutOfBounds)?;
    let from_end = |index: i64| index.saturating_add(length);
    let start = slice.start.unwrap_or_default();
    let start = if start < 0 { from_end(start) } else { start };
    let end = slice.end.unwrap_or(length);
    let is_last = end == 0 && slice.is_index;
    let end = if end < 0 || is_last {
        from_end(end)
    } else {
        end
    };
    if start == end {
        return Ok((0, 0));
    }
    let is_within = (0..length).contains(&start) && (start..=length).contains(&end);
    let index = |index: i64| usize::try_from(index).map_err(|_| Error::OutOfBounds);
    match is_within {
        true => Ok((index(start)?, index(end)?)),
        false => Err(Error::OutOfBounds),
    }
}

/// Returns the only value, if there is one.
fn single<'v>(values: &[&'v Value]) -> Result<Option<&'v Value>, Error> {
    match values {
        [] => Ok(None),
        [value] => Ok(Some(value)),
        _ => Err(Error::NotComparable),
    }
}

fn compare(operator: Operator, left: &Value, right: &Value) -> Result<bool, Error> {
    if let (Value::Bool(left), Value::Bool(right)) = (left, right) {
        return match operator {
            Operator::Equal => Ok(left == right),
            Operator::NotEqual => Ok(left != right),
            _ => Err(Error::NotComparable),
        };
    }
    let order = order(left, right).ok_or(Error::NotComparable)?;
    Ok(match operator {
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        Operator::GreaterOrEqual => order.is_ge(),
    })
}

/// Returns the order of two strings, two integers, or two other numbers.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::JsonPath;
    use super::*;

    fn object() -> Value {
        json!({
            "metadata": { "labels": { "app.example.com/name": "web" } },
            "spec": { "a-b": 1, "ports": [80, 443, 8080] },
            "status": { "conditions": [
                { "type": "Synced", "status": "False", "age": 2 },
                { "type": "Ready", "status": "True", "age": 5, "note": null },
            ] },
        })
    }

    fn all(path: &str) -> Value {
        let path = JsonPath::parse(path).unwrap_or_else(|_| panic!("{path}"));
        match evaluate(&path.0, &object()) {
            Ok(results) => json!(results),
            Err(error) => json!(format!("{error:?}")),
        }
    }

    #[test]
    fn a_path_selects_as_in_kubectl() {
        for (path, results) in [
            (".spec.a-b", json!([1])),
            ("$.spec['a-b']", json!([1])),
            (r".metadata.labels.app\.example\.com/name", json!(["web"])),
            (
                r".metadata.labels['app\.example\.com/name']",
                json!(["web"]),
            ),
            (".metadata.labels['app.example.com/name']", json!([])),
            (".spec.missing.a", json!([])),
            (".spec.ports[0]", json!([80])),
            (".spec.ports[-1]", json!([8080])),
            (".spec.ports[*]", json!([80, 443, 8080])),
            (".spec.ports[1:]", json!([443, 8080])),
            (".spec.ports[:-1]", json!([80, 443])),
            (".spec.ports[0:3:2]", json!([80, 8080])),
            (".spec.ports[0,2]", json!([80, 8080])),
            (".spec.ports[1:1]", json!([])),
            (".spec.*", json!([1, [80, 443, 8080]])),
            (".status.conditions[*].type", json!(["Synced", "Ready"])),
            (
                r#".status.conditions[?(@.type=="Ready")].status"#,
                json!(["True"]),
            ),
            (
                r#".status.conditions[?(@.type == 'Ready')].age"#,
                json!([5]),
            ),
            (r#".status.conditions[?(@.type!="Ready")].age"#, json!([2])),
            (".status.conditions[?(@.age>=5)].type", json!(["Ready"])),
            (".status.conditions[?(@.age<5)].type", json!(["Synced"])),
            (".status.conditions[?(@.note)].type", json!(["Ready"])),
            (".status.conditions[?(@.other=='x')].type", json!([])),
            (r#".status.conditions[?(@.type==")")].age"#, json!([])),
            ("..type", json!(["Synced", "Ready"])),
            (".status..age", json!([2, 5])),
        ] {
            assert_eq!(all(path), results, "{path}");
        }
    }

    #[test]
    fn a_path_that_does_not_apply_has_no_result() {
        for (path, error) in [
            (".spec.ports[3]", "OutOfBounds"),
            (".spec.ports[-4]", "OutOfBounds"),
            (".spec.ports[2:1]", "OutOfBounds"),
            (".spec.ports[0:2:0]", "OutOfBounds"),
            (".spec[0]", "NotAList"),
            (".spec[?(@.a)]", "NotAList"),
            (".status.conditions[?(@.age=='5')]", "NotComparable"),
            (".status.conditions[?(@.age<5.5)]", "NotComparable"),
            (".status.conditions[?(@.note==1)]", "NotComparable"),
            (".status.conditions[?(@.*=='5')]", "NotComparable"),
        ] {
            assert_eq!(all(path), json!(error), "{path}");
        }
    }

    #[test]
    fn other_text_is_malformed() {
        for text in [
            ".a[",
            ".a[x]",
            ".a[1:2:3:4]",
            ".a[?(@.b]",
            ".a[?(@.b=='c)]",
            ".a[?(@.b=c)]",
            ".a[?(@.b=~'c')]",
            "....",
            ".a|b c",
            ".a}",
            ".a 'x",
            ".a['b'c']",
        ] {
            assert_eq!(
                JsonPath::parse(text),
                Err(super::super::Malformed),
                "{text}"
            );
        }
    }

    #[test]
    fn the_work_for_a_path_is_bounded() {
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "a": deep, "b": [1, 2, 3] });
        }
        let path = JsonPath::parse("...*...*...*...*").unwrap();
        assert_eq!(evaluate(&path.0, &deep), Err(Error::TooManyValues));
        assert_eq!(path.first(&deep), None);
    }
}
