//! References to variables in commands, arguments and values: `$(NAME)`.

use std::collections::HashMap;

/// Replaces `$(NAME)` by its value. `$$` is a dollar sign; a name without a value stays as it is.
pub fn expand(text: &str, values: &HashMap<String, String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let named = after
            .strip_prefix('(')
            .and_then(|name| name.split_once(')'));
        rest = match (after.strip_prefix('$'), named) {
            (Some(after), _) => {
                expanded.push('$');
                after
            }
            (None, Some((name, after))) if values.contains_key(name) => {
                expanded.push_str(&values[name]);
                after
            }
            _ => {
                expanded.push('$');
                after
            }
        };
    }
    expanded + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> String {
        let values = [("A", "1"), ("B", "$(A)")];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        expand(text, &values.into())
    }

    #[test]
    fn references_are_replaced_once_and_unknown_ones_stay() {
        assert_eq!(expanded("x$(A)y$(B)"), "x1y$(A)");
        assert_eq!(expanded("$(C) $A $(A"), "$(C) $A $(A");
        assert_eq!(expanded("$$(A) $$$(A) $"), "$(A) $1 $");
    }
}
