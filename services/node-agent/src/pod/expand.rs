//! Expansion of variable references, `$(NAME)`, in commands, arguments and values.

use std::collections::HashMap;

/// Replaces each `$(NAME)` by its value. `$$` stands for a dollar sign; a reference without a value is kept.
pub fn expand(text: &str, values: &HashMap<String, String>) -> String {
    expand_by(text, |name| values.get(name).cloned())
}

/// Like [`expand`], but requires a value for every name.
///
/// # Errors
/// The first name without a value.
pub fn expand_all(text: &str, values: &HashMap<String, String>) -> Result<String, String> {
    let mut missing = None;
    let expanded = expand_by(text, |name| {
        let value = values.get(name).cloned();
        if value.is_none() {
            missing.get_or_insert(name.to_owned());
        }
        value
    });
    missing.map_or(Ok(expanded), Err)
}

fn expand_by(text: &str, mut value: impl FnMut(&str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            rest = after;
            continue;
        }
        let named = after
            .strip_prefix('(')
            .and_then(|name| name.split_once(')'));
        let known = named.and_then(|(name, after)| Some((value(name)?, after)));
        rest = match known {
            Some((value, after)) => {
                expanded.push_str(&value);
                after
            }
            None => {
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

    fn values() -> HashMap<String, String> {
        let values = [("A", "1"), ("B", "$(A)")];
        values
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    fn expanded(text: &str) -> String {
        expand(text, &values())
    }

    #[test]
    fn expand_all_fails_with_the_first_name_without_a_value() {
        assert_eq!(expand_all("x/$(A)$$(C)", &values()), Ok("x/1$(C)".into()));
        assert_eq!(expand_all("$(A)$(C)$(D)", &values()), Err("C".into()));
    }

    #[test]
    fn references_are_expanded_once_and_unknown_ones_are_kept() {
        assert_eq!(expanded("x$(A)y$(B)"), "x1y$(A)");
        assert_eq!(expanded("$(C) $A $(A"), "$(C) $A $(A");
        assert_eq!(expanded("$$(A) $$$(A) $"), "$(A) $1 $");
    }
}
