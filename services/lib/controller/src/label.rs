//! Actions in a few words, for spans: their data may hold whole Pod templates.

use std::fmt::{self, Debug, Write};

/// Longer than this says nothing more to a reader of a trace.
const MAX_LENGTH: usize = 160;

/// The beginning of what `Debug` says.
pub(crate) fn label(action: &impl Debug) -> String {
    let mut text = Beginning(String::new());
    // It ends with an error when it has enough.
    let _ = write!(text, "{action:?}");
    text.0
}

/// The name of the variant alone.
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
