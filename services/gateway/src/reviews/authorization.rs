//! The reviews of permissions, which are answered as the gateway decides about requests.

use std::future::ready;

use serde::Serialize;
use setpoint_codec::Object;
use setpoint_kinds::Identity;
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_kinds::validation::metadata;
use setpoint_model::names;
use setpoint_model::selector::{Comparison, FieldRequirement, Fields, Selector};
use setpoint_proto::authorization::{
    LocalSubjectAccessReview, NonResourceAttributes, NonResourceRule, ResourceAttributes,
    ResourceRule, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
    SubjectAccessReviewSpec, SubjectAccessReviewStatus, SubjectRulesReviewStatus,
};
use setpoint_proto::meta::{LabelSelector, LabelSelectorRequirement, ObjectMeta};
use setpoint_proto::{ApiError, Reason};

use crate::request::authorization::Rules;
use crate::request::{Attributes, Resource};
use crate::reviews::{Answering, Question, Review};

impl Review for SubjectAccessReview {
    fn answer<'a>(&'a mut self, question: &'a Question<'a>) -> Answering<'a> {
        Box::pin(async move {
            let mut errors = FieldErrors::default();
            validate_subject(&self.spec, &mut errors);
            validate_metadata(&self.metadata, "must be empty", &mut errors);
            errors.into_result(Object::kind(self), "")?;
            self.status = decide_about(&self.spec, question).await;
            Ok(())
        })
    }
}

impl Review for SelfSubjectAccessReview {
    fn answer<'a>(&'a mut self, question: &'a Question<'a>) -> Answering<'a> {
        Box::pin(async move {
            let (mut errors, spec) = (FieldErrors::default(), &self.spec);
            let (of, other) = (&spec.resource_attributes, &spec.non_resource_attributes);
            validate_attributes(of.as_ref(), other.as_ref(), &mut errors);
            validate_selectors(of.as_ref(), &mut errors);
            validate_metadata(&self.metadata, "must be empty", &mut errors);
            errors.into_result(Object::kind(self), "")?;
            let user = &question.context.user;
            self.status = decide(user, of.as_ref(), other.as_ref(), question).await;
            Ok(())
        })
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
            errors.into_result(Object::kind(self), "")?;
            self.status = decide_about(&self.spec, question).await;
            Ok(())
        })
    }
}

impl Review for SelfSubjectRulesReview {
    fn answer<'a>(&'a mut self, question: &'a Question<'a>) -> Answering<'a> {
        if self.spec.namespace.is_empty() {
            let error = ApiError::new(Reason::BadRequest, "no namespace on request");
            return Box::pin(ready(Err(error)));
        }
        let (authorizer, user) = (question.registry.authorizer(), &question.context.user);
        self.status = status_of(authorizer.rules_for(user, &self.spec.namespace));
        Box::pin(ready(Ok(())))
    }
}

/// Returns the answer to a question about any user.
async fn decide_about(
    spec: &SubjectAccessReviewSpec,
    question: &Question<'_>,
) -> SubjectAccessReviewStatus {
    let extra = spec.extra.iter();
    let user = Identity {
        name: spec.user.clone(),
        uid: spec.uid.clone(),
        groups: spec.groups.clone(),
        extra: extra
            .map(|(name, values)| (name.clone(), values.items.clone()))
            .collect(),
    };
    let (of, other) = (&spec.resource_attributes, &spec.non_resource_attributes);
    decide(&user, of.as_ref(), other.as_ref(), question).await
}

async fn decide(
    user: &Identity,
    of: Option<&ResourceAttributes>,
    other: Option<&NonResourceAttributes>,
    question: &Question<'_>,
) -> SubjectAccessReviewStatus {
    let attributes = match (of, other) {
        (Some(of), _) => {
            let attributes = Attributes::of_resource(of.verb.clone(), resource_of(of));
            Attributes {
                fields: fields_of(of),
                labels: labels_of(of),
                ..attributes
            }
        }
        (None, Some(other)) => Attributes::of_path(other.verb.clone(), &other.path),
        // It is invalid.
        (None, None) => return SubjectAccessReviewStatus::default(),
    };
    let authorizer = question.registry.authorizer();
    let decision = authorizer.decision(user, &attributes).await;
    SubjectAccessReviewStatus {
        allowed: decision.allowed,
        denied: decision.denied,
        reason: decision.reason,
        evaluation_error: decision.error,
    }
}

fn resource_of(of: &ResourceAttributes) -> Resource {
    Resource {
        group: of.group.clone(),
        version: of.version.clone(),
        resource: of.resource.clone(),
        subresource: of.subresource.clone(),
        namespace: of.namespace.clone(),
        name: of.name.clone(),
    }
}

/// Returns the requirements of the field selector. As upstream, those that no selector can express are left out, and so
/// is a selector that cannot be parsed: the question is then for more than was meant.
fn fields_of(of: &ResourceAttributes) -> Vec<FieldRequirement> {
    let Some(selector) = &of.field_selector else {
        return Vec::new();
    };
    if !selector.raw_selector.is_empty() {
        let parsed = Fields::parse(&selector.raw_selector).unwrap_or_default();
        return parsed.requirements().to_vec();
    }
    let requirements = selector.requirements.iter().filter_map(|one| {
        let comparison = match one.operator.as_str() {
            "In" => Comparison::Equal,
            "NotIn" => Comparison::NotEqual,
            _ => return None,
        };
        let [value] = one.values.as_slice() else {
            return None;
        };
        Some(FieldRequirement {
            path: one.key.clone(),
            comparison,
            value: value.clone(),
        })
    });
    requirements.collect()
}

/// Returns the label selector, of which the same holds as of that of fields.
fn labels_of(of: &ResourceAttributes) -> Selector {
    let Some(selector) = &of.label_selector else {
        return Selector::everything();
    };
    if !selector.raw_selector.is_empty() {
        return Selector::parse(&selector.raw_selector).unwrap_or_default();
    }
    let requirements = selector
        .requirements
        .iter()
        .map(|one| LabelSelectorRequirement {
            key: one.key.clone(),
            operator: one.operator.clone(),
            values: one.values.clone(),
        });
    let is_one = |one: &LabelSelectorRequirement| {
        let alone = LabelSelector {
            match_expressions: vec![one.clone()],
            ..LabelSelector::default()
        };
        Selector::from_label_selector(&alone).is_ok()
    };
    let all = LabelSelector {
        match_expressions: requirements.filter(is_one).collect(),
        ..LabelSelector::default()
    };
    Selector::from_label_selector(&all).unwrap_or_default()
}

fn status_of(found: Rules) -> SubjectRulesReviewStatus {
    let mut status = SubjectRulesReviewStatus {
        evaluation_error: found.error.unwrap_or_default(),
        ..SubjectRulesReviewStatus::default()
    };
    for rule in found.rules {
        if !rule.non_resource_urls.is_empty() {
            status.non_resource_rules.push(NonResourceRule {
                verbs: rule.verbs.clone(),
                non_resource_ur_ls: rule.non_resource_urls,
            });
        }
        if !rule.resources.is_empty() {
            status.resource_rules.push(ResourceRule {
                verbs: rule.verbs,
                api_groups: rule.api_groups,
                resources: rule.resources,
                resource_names: rule.resource_names,
            });
        }
    }
    status
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
