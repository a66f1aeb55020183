//! RuntimeClass: the handler is immutable. Pods get its overhead and its scheduling (see the admission plugin
//! RuntimeClass).

use setpoint_model::names;
use setpoint_proto::core::{ResourceRequirements, Toleration};
use setpoint_proto::node::RuntimeClass;

use super::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::metadata;
use crate::validation::podspec::{canonicalise, validate_resources, validate_toleration};
use crate::validation::warnings::{Warnings, node_label_message};

impl StoredKind for RuntimeClass {
    const CREATES_ON_UPDATE: bool = true;
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

    fn fill_defaults(&mut self) {
        if let Some(overhead) = &mut self.overhead {
            canonicalise(&mut overhead.pod_fixed);
        }
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let path = FieldPath::root("handler");
        errors.check_required(&path, &self.handler, names::validate_dns_label);
        if let Some(overhead) = &self.overhead {
            let resources = ResourceRequirements {
                limits: overhead.pod_fixed.clone(),
                ..Default::default()
            };
            validate_resources(&resources, &FieldPath::root("overhead"), errors);
        }
        if let Some(scheduling) = &self.scheduling {
            let path = FieldPath::root("scheduling");
            let at = path.field("nodeSelector");
            metadata::validate_labels(&scheduling.node_selector, &at, errors);
            let at = path.field("tolerations");
            validate_tolerations(&scheduling.tolerations, &at, errors);
        }
    }

    fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
        let scheduling = self.scheduling.iter();
        let labels = scheduling.flat_map(|scheduling| scheduling.node_selector.keys());
        let path = FieldPath::root("scheduling");
        for message in labels.filter_map(|label| node_label_message(label)) {
            warnings.about(&path.field("nodeSelector"), message);
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        errors.immutable(&FieldPath::root("handler"), &self.handler, &old.handler);
    }
}

fn validate_tolerations(
    tolerations: &[Toleration],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let key = |one: &Toleration| {
        let fields = [&one.key, &one.operator, &one.value, &one.effect];
        fields.map(String::clone)
    };
    for (index, toleration) in tolerations.iter().enumerate() {
        let at = path.index(index);
        validate_toleration(toleration, &at, errors);
        let mut before = tolerations[..index].iter();
        if before.any(|other| key(other) == key(toleration)) {
            errors.duplicate(&at, toleration);
        }
    }
}
