//! The parts of which upstream's texts consist.

use std::fmt::Write as _;

/// Returns texts in quotes, with commas between them. As upstream, quotes within are left as they are.
pub(crate) fn quoted<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let items = items.into_iter();
    let items: Vec<_> = items.map(|item| format!("\"{}\"", item.as_ref())).collect();
    items.join(", ")
}

/// Returns the singular for one item, and else the plural.
pub(crate) const fn number<'a>(singular: &'a str, plural: &'a str, count: usize) -> &'a str {
    match count {
        1 => singular,
        _ => plural,
    }
}

/// Returns the names of containers, of which there is one at least.
pub(crate) fn containers(names: &[&str]) -> String {
    let noun = number("container", "containers", names.len());
    format!("{noun} {}", quoted(names))
}

/// Returns what sets a forbidden value: the Pod, containers, or both. `None` if nothing does.
pub(crate) fn setters(pod: bool, names: &[&str]) -> Option<String> {
    match (pod, names) {
        (false, []) => None,
        (true, []) => Some("pod".to_owned()),
        (false, names) => Some(containers(names)),
        (true, names) => Some(format!("pod and {}", containers(names))),
    }
}

/// Returns an annotation as Go's `%s=%q` prints it.
pub(crate) fn annotation(key: &str, value: &str) -> String {
    let mut text = format!("{key}=\"");
    for letter in value.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\x07' => text.push_str("\\a"),
            '\x08' => text.push_str("\\b"),
            '\x0b' => text.push_str("\\v"),
            '\x0c' => text.push_str("\\f"),
            control if control.is_ascii_control() => {
                let _ = write!(text, "\\x{:02x}", u32::from(control));
            }
            other => text.push(other),
        }
    }
    text.push('"');
    text
}
