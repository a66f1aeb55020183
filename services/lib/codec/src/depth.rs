//! The depth of JSON: the number of objects and lists that are nested in a value.

use serde_json::Value;

/// The largest depth of JSON that can be read, which is the limit of `serde_json`.
pub const MAX_DEPTH: usize = 127;

/// The largest depth of a new object of a custom kind, its managed fields left out. Managed fields nest the same path
/// five levels deeper, and reviews of webhooks the whole object three.
pub const MAX_OBJECT_DEPTH: usize = 100;

/// Returns the depth of a value: 0 for a scalar, 1 for an object or a list of scalars.
pub fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Object(fields) => fields.values().map(depth).max(),
        Value::Array(items) => items.iter().map(depth).max(),
        _ => return 0,
    };
    1 + below.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> String {
        format!(
            "{}{}",
            r#"{"a":["#.repeat(depth / 2),
            "]}".repeat(depth / 2)
        )
    }

    #[test]
    fn the_limit_is_that_of_the_parser() {
        let within = nested(MAX_DEPTH - 1);
        let read: Value = serde_json::from_str(&within).unwrap();
        assert_eq!(depth(&read), MAX_DEPTH - 1);
        let read: Value = serde_json::from_str(&format!("[{within}]")).unwrap();
        assert_eq!(depth(&read), MAX_DEPTH);
        assert!(serde_json::from_str::<Value>(&format!("[[{within}]]")).is_err());
    }

    #[test]
    fn a_scalar_has_no_depth_and_a_list_that_of_its_deepest_item() {
        assert_eq!(depth(&Value::from(1)), 0);
        let listed = serde_json::json!([1, { "a": {} }, []]);
        assert_eq!(depth(&listed), 3);
    }
}
