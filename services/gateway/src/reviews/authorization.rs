//! The reviews of permissions. They are answered as the gateway decides about requests: everything is allowed.

use std::future::ready;

use serde::Serialize;
use setpoint_codec::Object;
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_kinds::validation::metadata;
use setpoint_model::names;
use setpoint_proto::authorization::{
    LocalSubjectAccessReview, NonResourceAttributes, NonResourceRule, ResourceAttributes,
    ResourceRule, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
    SubjectAccessReviewSpec, SubjectAccessReviewStatus, SubjectRulesReviewStatus,
};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Reason};

use crate::request::authorization::REASON;
use crate::reviews::{Answering, Question, Review};

impl Review for SubjectAccessReview {
    fn answer<'a>(&'a mut self, _question: &'a Question<'a>) -> Answering<'a> {
        let mut errors = FieldErrors::default();
        validate_subject(&self.spec, &mut errors);
        validate_metadata(&self.metadata, "must be empty", &mut errors);
        self.status = allowed();
        Box::pin(ready(errors.into_result(Object::kind(self), "")))
    }
}

impl Review for SelfSubjectAccessReview {
    fn answer<'a>(&'a mut self, _question: &'a Question<'a>) -> Answering<'a> {
        let (mut errors, spec) = (FieldErrors::default(), &self.spec);
        let (of, other) = (&spec.resource_attributes, &spec.non_resource_attributes);
        validate_attributes(of.as_ref(), other.as_ref(), &mut errors);
        validate_selectors(of.as_ref(), &mut errors);
        validate_metadata(&self.metadata, "must be empty", &mut errors);
        self.status = allowed();
        Box::pin(ready(errors.into_result(Object::kind(self), "")))
    }
}

impl Review for LocalSubjectAccessReview {
    fn answer<'a>(&'a mut self, question: &'a Question<'a>) -> Answering<'a> {
        Box::pin(async move {
            metadata::match_target(&mut self.metadata, question.target)?;
            let mut errors = FieldErrors::default();
            validate_subject(&self.spec, &mut errors);
            let namespace = &self.metadata.namespace;
            let rest = ObjectMeta {
                namespace: String::new(),
                ..self.metadata.clone()
            };
            validate_metadata(&rest, "must be empty except for namespace", &mut errors);
            let spec = &self.spec;
            if let Some(of) = &spec.resource_attributes
                && of.namespace != *namespace
            {
                let path = FieldPath::root("spec.resourceAttributes.namespace");
                errors.invalid(&path, &of.namespace, "must match metadata.namespace");
            }
            if let Some(of) = &spec.non_resource_attributes {
                let path = FieldPath::root("spec.nonResourceAttributes");
                errors.invalid(&path, of, "disallowed on this kind of request");
            }
            self.status = allowed();
            errors.into_result(Object::kind(self), "")
        })
    }
}

impl Review for SelfSubjectRulesReview {
    fn answer<'a>(&'a mut self, _question: &'a Question<'a>) -> Answering<'a> {
        if self.spec.namespace.is_empty() {
            let error = ApiError::new(Reason::BadRequest, "no namespace on request");
            return Box::pin(ready(Err(error)));
        }
        let all = || vec!["*".to_owned()];
        self.status = SubjectRulesReviewStatus {
            resource_rules: vec![ResourceRule {
                verbs: all(),
                api_groups: all(),
                resources: all(),
                ..Default::default()
            }],
            non_resource_rules: vec![NonResourceRule {
                verbs: all(),
                non_resource_ur_ls: all(),
            }],
            ..Default::default()
        };
        Box::pin(ready(Ok(())))
    }
}

fn allowed() -> SubjectAccessReviewStatus {
    SubjectAccessReviewStatus {
        allowed: true,
        reason: REASON.into(),
        ..Default::default()
    }
}

fn validate_subject(spec: &SubjectAccessReviewSpec, errors: &mut FieldErrors) {
    let (of, other) = (&spec.resource_attributes, &spec.non_resource_attributes);
    validate_attributes(of.as_ref(), other.as_ref(), errors);
    if spec.user.is_empty() && spec.groups.is_empty() {
        let path = FieldPath::root("spec");
        let detail = "at least one of user or group must be specified";
        errors.invalid(&path.field("user"), &spec.user, detail);
    }
    validate_selectors(of.as_ref(), errors);
}

fn validate_attributes(
    of: Option<&ResourceAttributes>,
    other: Option<&NonResourceAttributes>,
    errors: &mut FieldErrors,
) {
    let path = FieldPath::root("spec");
    match (of, other) {
        (Some(_), Some(other)) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            errors.invalid(&path.field("nonResourceAttributes"), other, detail);
        }
        (None, None) => {
            let detail =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.invalid(&path.field("resourceAttributes"), other, detail);
        }
        _ => {}
    }
}

fn validate_selectors(of: Option<&ResourceAttributes>, errors: &mut FieldErrors) {
    let Some(of) = of else { return };
    let path = FieldPath::root("spec.resourceAttributes");
    if let Some(selector) = &of.field_selector {
        let requirements = selector.requirements.iter();
        let requirements = requirements.map(|one| Requirement {
            key: &one.key,
            operator: &one.operator,
            values: &one.values,
        });
        let requirements: Vec<_> = requirements.collect();
        let path = path.field("fieldSelector");
        validate_selector(&selector.raw_selector, &requirements, &path, errors);
    }
    if let Some(selector) = &of.label_selector {
        let requirements = selector.requirements.iter();
        let requirements = requirements.map(|one| Requirement {
            key: &one.key,
            operator: &one.operator,
            values: &one.values,
        });
        let requirements: Vec<_> = requirements.collect();
        let path = path.field("labelSelector");
        validate_selector(&selector.raw_selector, &requirements, &path, errors);
        for (index, one) in requirements.iter().enumerate() {
            let at = path.field("requirements");
            let at = at.index(index);
            errors.check(&at.field("key"), one.key, names::validate_qualified_name);
        }
    }
}

/// A requirement of a field or label selector.
struct Requirement<'a> {
    key: &'a str,
    operator: &'a str,
    values: &'a [String],
}

/// Validates a selector. Operators that are not known are accepted.
fn validate_selector(
    raw: &str,
    requirements: &[Requirement<'_>],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if !raw.is_empty() && !requirements.is_empty() {
        let detail = "may not specified at the same time as requirements";
        errors.invalid(&path.field("rawSelector"), raw, detail);
    }
    if raw.is_empty() && requirements.is_empty() {
        let detail = format!("when {path} is specified, requirements or rawSelector is required");
        errors.required(&path.field("requirements"), &detail);
    }
    for (index, one) in requirements.iter().enumerate() {
        let at = path.field("requirements");
        let at = at.index(index);
        errors.not_empty(&at.field("key"), one.key);
        match (one.operator, one.values.is_empty()) {
            ("In" | "NotIn", true) => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.required(&at.field("values"), detail);
            }
            ("Exists" | "DoesNotExist", false) => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&at.field("values"), detail);
            }
            _ => {}
        }
    }
}

fn validate_metadata(metadata: &ObjectMeta, detail: &str, errors: &mut FieldErrors) {
    let rest = ObjectMeta {
        managed_fields: Vec::new(),
        ..metadata.clone()
    };
    if rest != ObjectMeta::default() {
        errors.invalid(&FieldPath::root("metadata"), json(metadata), detail);
    }
}

fn json(value: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}
