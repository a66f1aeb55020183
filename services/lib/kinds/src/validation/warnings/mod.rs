//! The warnings about a valid object, such as those about fields that are deprecated or have no effect. Their texts are
//! upstream's.

mod amount;
mod ip;
mod node_labels;

use std::fmt::Display;

use setpoint_model::names;

use crate::validation::field_path::FieldPath;

pub(crate) use amount::warn_of_fraction;
pub(crate) use ip::{warn_of_address, warn_of_addresses, warn_of_range};
pub(crate) use node_labels::{
    message as node_label_message, warn_of_expressions, warn_of_node_selector,
    warn_of_node_selector_terms,
};

/// The length of all texts of a response in characters, above which upstream shortens each to [`SHORT`] and leaves out
/// what is still too long.
const MAX: usize = 4 << 10;
const SHORT: usize = 256;

/// A list of warnings. It has an end, past which no response could have more of them.
#[derive(Debug, Default)]
pub struct Warnings {
    texts: Vec<String>,
    /// The length of the shortened texts.
    length: usize,
}

impl Warnings {
    /// Adds a warning about a field.
    pub fn about(&mut self, path: &FieldPath<'_>, text: impl Display) {
        if !self.is_full() {
            self.add(format!("{path}: {text}"));
        }
    }

    /// Adds a warning.
    pub fn add(&mut self, text: impl Into<String>) {
        if self.is_full() {
            return;
        }
        let text = text.into();
        self.length += text.chars().take(SHORT).count();
        self.texts.push(text);
    }

    /// Returns whether further warnings are dropped.
    pub const fn is_full(&self) -> bool {
        self.length > MAX
    }

    /// Returns the texts, in the order in which they were added.
    pub fn into_texts(self) -> Vec<String> {
        self.texts
    }
}

/// Warns of the name of an object that is the start of the names of its Pods, unless it is a DNS label.
pub(crate) fn warn_of_pod_names(name: &str, warnings: &mut Warnings) {
    let of = "Pod names and hostnames";
    warn_of_name(name, of, warnings);
}

/// Warns of the name of a Pod, unless it is a DNS label.
pub(crate) fn warn_of_hostname(name: &str, warnings: &mut Warnings) {
    warn_of_name(name, "the Pod's hostname", warnings);
}

fn warn_of_name(name: &str, of: &str, warnings: &mut Warnings) {
    let problems = names::validate_dns_label(name);
    if !problems.is_empty() {
        let problems = problems.join(" ");
        warnings.add(format!(
            "metadata.name: this is used in {of}, which can result in surprising behavior; \
             a DNS label is recommended: [{problems}]"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_ends_past_what_a_response_can_have() {
        let mut warnings = Warnings::default();
        for index in 0..100_000 {
            warnings.add(format!("{index:0>1000}"));
        }
        assert_eq!(warnings.into_texts().len(), MAX / SHORT + 1);
    }
}
