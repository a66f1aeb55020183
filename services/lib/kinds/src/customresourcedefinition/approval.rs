//! The annotation by which definitions in the groups of Kubernetes' community name their approval.

use http::Uri;
use setpoint_proto::apiextensions::CustomResourceDefinition;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const DOMAINS: [&str; 2] = ["k8s.io", "kubernetes.io"];

/// The content of the annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approval {
    /// The URL of an approval.
    Approved,
    /// A reason that begins with `unapproved`.
    Bypassed,
    Invalid,
    Missing,
}

impl Approval {
    /// Returns the approval of a definition; `None` if its group needs none.
    pub(super) fn of(definition: &CustomResourceDefinition) -> Option<Self> {
        is_protected(&definition.spec.group).then(|| Self::parse(annotation(definition)))
    }

    fn parse(annotation: &str) -> Self {
        let uri = annotation.parse::<Uri>();
        let is_url = uri.is_ok_and(|uri| uri.scheme().is_some() && uri.host().is_some());
        match annotation {
            "" => Self::Missing,
            text if text.starts_with("unapproved") => Self::Bypassed,
            _ if is_url => Self::Approved,
            _ => Self::Invalid,
        }
    }

    /// Returns the reason and message of the condition about it.
    pub(super) fn explain(self, definition: &CustomResourceDefinition) -> (&'static str, String) {
        const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
        let text = annotation(definition);
        let must = format!("protected groups must have approval annotation {ANNOTATION:?}");
        match self {
            Self::Approved => ("ApprovedAnnotation", format!("approved in {text}")),
            Self::Bypassed => ("UnapprovedAnnotation", format!("not approved: {text:?}")),
            Self::Missing => ("MissingAnnotation", format!("{must}, {SEE}")),
            Self::Invalid => {
                let form = r#"with either a URL or a reason starting with "unapproved""#;
                ("InvalidAnnotation", format!("{must} {form}, {SEE}"))
            }
        }
    }
}

fn annotation(definition: &CustomResourceDefinition) -> &str {
    let annotations = &definition.metadata.annotations;
    annotations.get(ANNOTATION).map_or("", String::as_str)
}

fn is_protected(group: &str) -> bool {
    let within = |domain: &str| {
        let parent = group.strip_suffix(domain);
        parent.is_some_and(|parent| parent.is_empty() || parent.ends_with('.'))
    };
    DOMAINS.iter().any(|domain| within(domain))
}

/// Requires a valid annotation, unless it is as wrong as before.
pub(super) fn validate(
    new: &CustomResourceDefinition,
    old: Option<&CustomResourceDefinition>,
    errors: &mut FieldErrors,
) {
    let Some(approval) = Approval::of(new) else {
        return;
    };
    if old.and_then(Approval::of) == Some(approval) {
        return;
    }
    let path = FieldPath::root("metadata");
    let path = path.field("annotations");
    let path = path.key(ANNOTATION);
    let (_, detail) = approval.explain(new);
    match approval {
        Approval::Missing => errors.required(&path, &detail),
        Approval::Invalid => errors.invalid(&path, annotation(new), detail),
        Approval::Approved | Approval::Bypassed => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_is_a_url_or_says_that_there_is_none() {
        for (text, expected) in [
            ("", Approval::Missing),
            ("unapproved, experimental", Approval::Bypassed),
            ("https://example.com/1", Approval::Approved),
            ("/relative", Approval::Invalid),
            ("bad value", Approval::Invalid),
        ] {
            assert_eq!(Approval::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn groups_of_the_community_are_protected() {
        for group in ["k8s.io", "a.k8s.io", "kubernetes.io", "a.b.kubernetes.io"] {
            assert!(is_protected(group), "{group}");
        }
        for group in ["myk8s.io", "k8s.io.example.com", "example.com", ""] {
            assert!(!is_protected(group), "{group}");
        }
    }
}
