//! PodTemplate: its template is validated as those of workloads are, with any restart policy.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::core::PodTemplate;

use super::{StoredKind, template};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec;
use crate::validation::warnings::Warnings;

impl StoredKind for PodTemplate {
    const COUNTS_GENERATIONS: bool = true;
    const RETURNS_DELETED: bool = true;

    fn fill_defaults(&mut self) {
        podspec::fill_defaults(&mut self.template.spec);
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.template != old.template
    }

    fn validate(&self, errors: &mut FieldErrors) {
        template::validate_template(&self.template, &FieldPath::root("template"), errors);
    }

    fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
        if template::is_new_intent(self, old) {
            podspec::warn_of_template(&self.template, &FieldPath::root("template"), warnings);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        match column {
            "Pod Labels" => Some(template::labels(&self.template.metadata.labels)),
            _ => template::cell(column, &self.template, None),
        }
    }
}
