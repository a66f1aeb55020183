//! Short labels of actions, whose data may hold whole objects.

use std::fmt::{self, Debug, Write};

/// The longest label, in bytes.
const MAX_LENGTH: usize = 160;
/// The end of a label that is not the whole output.
const MORE: char = '…';

/// The beginning of the `Debug` output of an object, after its kind.
const METADATA: &str = " { metadata: ObjectMeta { name: ";
/// The next field, which has a new object's prefix if it has no name.
const GENERATE_NAME: &str = ", generate_name: ";

/// Returns the beginning of the action's `Debug` output, which ends in `…` if there is more. Of a whole object, it has
/// the kind and the name.
pub(crate) fn label(action: &impl Debug) -> String {
    let mut text = Beginning(String::new());
    // An error ends the formatting at the limit.
    let _ = write!(text, "{action:?}");
    text.0
}

/// Returns the name of the variant.
pub(crate) fn verb(brief: &str) -> &str {
    let end = brief.find(|c: char| !c.is_alphanumeric());
    &brief[..end.unwrap_or(brief.len())]
}

struct Beginning(String);

impl Beginning {
    /// Ends the text within the limit, without the separators at its end.
    fn cut(&mut self) {
        let room = MAX_LENGTH.saturating_sub(MORE.len_utf8());
        self.0.truncate(self.0.floor_char_boundary(room));
        let end = self
            .0
            .trim_end_matches([' ', ',', ':', '(', '[', '{'])
            .len();
        self.0.truncate(end);
        self.0.push(MORE);
    }

    /// Ends the text at the name of an object, once that is known.
    fn ends_at_name(&mut self) -> bool {
        let Some((before, metadata)) = self.0.split_once(METADATA) else {
            return false;
        };
        let Some((name, rest)) = quoted(metadata) else {
            return false;
        };
        let name = match (name, rest.strip_prefix(GENERATE_NAME).and_then(quoted)) {
            ("", None) => return false,
            ("", Some((prefix, _))) => format!("{prefix}{MORE}"),
            (name, _) => name.to_owned(),
        };
        let open = before.matches('(').count();
        let closed = before.matches(')').count();
        let end = ")".repeat(open.saturating_sub(closed));
        self.0 = format!("{before} {name:?}{end}");
        true
    }
}

/// Returns the quoted text at the beginning of a text, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"')
}

impl Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_LENGTH.saturating_sub(self.0.len());
        let end = text.floor_char_boundary(room);
        self.0.push_str(&text[..end]);
        if self.0.ends_with('"') && self.ends_at_name() {
            return Err(fmt::Error);
        }
        if end < text.len() {
            self.cut();
            return Err(fmt::Error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::ConfigMap;

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
        assert!(brief.ends_with("ä…"));
    }

    #[test]
    fn a_label_that_is_cut_says_so_and_has_no_separator_at_its_end() {
        for length in 0..200 {
            let words = ["a".repeat(length), "b".repeat(length)];
            let (label, whole) = (label(&words), format!("{words:?}"));
            match label.strip_suffix(MORE) {
                None => assert_eq!(label, whole),
                Some(beginning) => {
                    assert!(whole.len() > MAX_LENGTH && label.len() <= MAX_LENGTH);
                    assert!(whole.starts_with(beginning) && !beginning.ends_with([',', ' ']));
                }
            }
        }
    }

    #[test]
    fn an_object_is_named() {
        let mut object = ConfigMap::default();
        object.data.insert("key".into(), "value".into());
        object.metadata.generate_name = "web-".into();
        assert_eq!(label(&Some(&object)), r#"Some(ConfigMap "web-…")"#);
        object.metadata.name = "web".into();
        assert_eq!(label(&Some(&object)), r#"Some(ConfigMap "web")"#);
        object.metadata.name = "a".repeat(200);
        assert!(label(&object).starts_with("ConfigMap { metadata: ObjectMeta { name: \"aaa"));
    }
}
