//! The cells of custom kinds, by the JSON paths of their columns.

use jiff::Timestamp;
use serde_json::{Number, Value};
use setpoint_codec::Column;
use setpoint_kinds::age;
use setpoint_kinds::json_path::JsonPath;

/// Returns the cell of a column: the first result of its path, as upstream; null if there is none, or one of another
/// type.
pub(super) fn cell(object: &Value, column: &Column, now: Timestamp) -> Value {
    let path = JsonPath::parse(column.path.as_deref().unwrap_or_default());
    let path = path.ok();
    let Some(value) = path.as_ref().and_then(|path| path.first(object)) else {
        return Value::Null;
    };
    match (column.r#type.as_str(), value) {
        ("string", Value::Null) => "<no value>".into(),
        ("string", value) => setpoint_schema::print(value).into(),
        ("integer", Value::Number(number)) => whole(number),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => date(text, now).into(),
        _ => Value::Null,
    }
}

/// Returns a number without its fraction.
fn whole(number: &Number) -> Value {
    match number.as_i64() {
        Some(whole) => whole.into(),
        #[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
        None => (number.as_f64().unwrap_or_default() as i64).into(),
    }
}

/// Returns the time since a date, as kubectl prints it.
fn date(text: &str, now: Timestamp) -> String {
    match text {
        "" | "null" => age::since(None, now),
        text => match text.parse() {
            Ok(since) => age::since(Some(since), now),
            Err(_) => "<invalid>".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cell_of(r#type: &str, value: &Value) -> Value {
        let column = Column {
            name: "A".into(),
            r#type: r#type.into(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            path: Some(".a".into()),
        };
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        cell(&json!({ "a": value }), &column, now)
    }

    #[test]
    fn a_cell_has_the_type_of_its_column() {
        for (of, value, expected) in [
            ("integer", json!(3), json!(3)),
            ("integer", json!(3.9), json!(3)),
            ("integer", json!("3"), Value::Null),
            ("number", json!(2.5), json!(2.5)),
            ("boolean", json!(true), json!(true)),
            ("boolean", json!("true"), Value::Null),
            ("date", json!("2026-01-01T00:59:00Z"), json!("60s")),
            ("date", json!("soon"), json!("<invalid>")),
            ("date", json!(""), json!("<unknown>")),
            ("date", json!(5), Value::Null),
            ("date", Value::Null, Value::Null),
        ] {
            assert_eq!(cell_of(of, &value), expected, "{of} {value}");
        }
    }

    #[test]
    fn any_value_is_printed_in_a_column_of_strings() {
        for (value, expected) in [
            (json!("x"), "x"),
            (json!(3), "3"),
            (json!(1e6), "1e+06"),
            (json!(false), "false"),
            (json!(["a", 1]), r#"["a",1]"#),
            (json!({ "b": "<" }), r#"{"b":"\u003c"}"#),
            (Value::Null, "<no value>"),
        ] {
            assert_eq!(cell_of("string", &value), expected, "{value}");
        }
    }
}
