//! The comments of the `.proto` files, which `kubectl explain` prints.

use std::cmp::Ordering;

use prost_reflect::{FieldDescriptor, MessageDescriptor};
use setpoint_proto::COMMENTS;

/// Returns the comment of a message.
pub fn of_message(message: &MessageDescriptor) -> Option<&'static str> {
    of(message.full_name())
}

/// Returns the comment of a field.
pub fn of_field(field: &FieldDescriptor) -> Option<&'static str> {
    of(field.full_name())
}

/// Returns the comment of a message or field by its full name. Its line is found by bisection of the sorted text:
/// tables of the comments would stay in memory.
fn of(name: &str) -> Option<&'static str> {
    let mut lines = COMMENTS;
    while !lines.is_empty() {
        let middle = lines.floor_char_boundary(lines.len() / 2);
        let start = lines[..middle].rfind('\n').map_or(0, |end| end + 1);
        let (line, after) = lines[start..].split_once('\n')?;
        let (known, text) = line.split_once('\t')?;
        match name.cmp(known) {
            Ordering::Less => lines = &lines[..start],
            Ordering::Greater => lines = after,
            Ordering::Equal => return Some(text),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_comment_is_found_by_its_name() {
        for line in COMMENTS.lines() {
            let (name, text) = line.split_once('\t').unwrap();
            assert_eq!(of(name), Some(text), "{name}");
        }
        for name in ["", "a", "k8s.core.v1.Pod.spe", "k8s.core.v1.Pods", "~"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
