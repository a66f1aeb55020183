//! Short labels of actions, whose data may hold whole Pod templates.

use std::fmt::{self, Debug, Write};

/// The longest label, in bytes.
const MAX_LENGTH: usize = 160;

/// Returns the beginning of the action's `Debug` output.
pub(crate) fn label(action: &impl Debug) -> String {
    let mut text = Beginning(String::new());
    // The error ends the formatting at the limit.
    let _ = write!(text, "{action:?}");
    text.0
}

/// Returns the name of the variant.
pub(crate) fn verb(brief: &str) -> &str {
    let end = brief.find(|c: char| !c.is_alphanumeric());
    &brief[..end.unwrap_or(brief.len())]
}

struct Beginning(String);

impl Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_LENGTH.saturating_sub(self.0.len());
        let end = text.floor_char_boundary(room);
        self.0.push_str(&text[..end]);
        match end == text.len() {
            true => Ok(()),
            false => Err(fmt::Error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    #[allow(dead_code)]
    enum Action {
        Create { name: String },
        Wait,
    }

    #[test]
    fn an_action_is_named_by_its_variant_and_cut_at_a_bound() {
        let name = "ä".repeat(1000);
        let action = Action::Create { name };
        assert_eq!(verb(&label(&action)), "Create");
        assert_eq!(verb(&label(&Action::Wait)), "Wait");
        let brief = label(&action);
        assert!(brief.starts_with("Create { name: \"ää") && brief.len() <= MAX_LENGTH);
    }
}
