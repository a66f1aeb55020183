//! Filters: compiled label and field selectors.

use setpoint_codec::Kind;
use setpoint_model::selector::{Comparison, Fields, Selector};
use setpoint_proto::{ApiError, Reason};

use super::Cached;
use super::fields::Field;

/// A filter of objects by kind, namespace, labels and fields.
#[derive(Clone, Debug)]
pub struct Filter {
    served: &'static Kind,
    kind: &'static Kind,
    namespace: String,
    labels: Selector,
    requirements: Vec<Requirement>,
    /// The requirements on fields that an object has only in the version of the request, because a webhook converts it.
    of_converted: Vec<Requirement>,
    indexed: Option<String>,
}

#[derive(Clone, Debug)]
struct Requirement {
    source: Source,
    equal: bool,
    value: String,
}

/// The source of the value to compare.
#[derive(Clone, Debug)]
enum Source {
    Name,
    Namespace,
    /// The first of these fields that is set.
    Fields(Vec<Field>),
}

impl Filter {
    /// Returns a filter that selects all objects of a kind in a namespace or, if that is empty, in all.
    pub fn all(kind: &'static Kind, namespace: impl Into<String>) -> Self {
        Self {
            served: kind,
            kind: kind.stored(),
            namespace: namespace.into(),
            labels: Selector::everything(),
            requirements: Vec::new(),
            of_converted: Vec::new(),
            indexed: None,
        }
    }

    /// Returns a filter with selectors.
    ///
    /// # Errors
    /// `BadRequest` if the kind does not support a field of the selector.
    pub fn new(
        kind: &'static Kind,
        namespace: impl Into<String>,
        labels: Selector,
        fields: &Fields,
    ) -> Result<Self, ApiError> {
        let requirements = fields.requirements().iter().map(|requirement| {
            let source = Source::resolve(kind, &requirement.path)
                .ok_or_else(|| unsupported(kind, &requirement.path))?;
            Ok(Requirement {
                source,
                equal: requirement.comparison == Comparison::Equal,
                value: requirement.value.clone(),
            })
        });
        let requirements = requirements.collect::<Result<Vec<_>, ApiError>>()?;
        let resource = kind.custom_resource();
        let is_converted = resource.is_some_and(|resource| resource.webhook().is_some());
        let (of_converted, requirements) = (requirements.into_iter())
            .partition(|one| is_converted && matches!(one.source, Source::Fields(_)));
        Ok(Self {
            requirements,
            of_converted,
            indexed: (kind.stored().indexed.as_ref())
                .and_then(|path| fields.exact(path))
                .map(str::to_owned),
            labels,
            ..Self::all(kind, namespace)
        })
    }

    /// Returns the kind that the request names: the stored one, or another version of it.
    pub fn served(&self) -> &'static Kind {
        self.served
    }

    /// Returns the stored kind.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// Returns the namespace; empty for all.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns whether the filter selects all objects of its namespace.
    pub fn selects_all(&self) -> bool {
        self.labels.is_empty() && self.requirements.is_empty() && !self.needs_conversion()
    }

    /// Returns whether it depends on fields of objects that a webhook has to convert before. [`Self::matches`] leaves
    /// them out.
    pub fn needs_conversion(&self) -> bool {
        !self.of_converted.is_empty()
    }

    /// Returns whether the fields of an object in the version of the request are as the filter requires.
    pub fn matches_converted(&self, object: &Cached) -> bool {
        self.of_converted
            .iter()
            .all(|requirement| requirement.is_met_by(object))
    }

    /// Returns the value that the indexed field of the selected objects must have, if the filter names one.
    pub(super) fn indexed(&self) -> Option<&str> {
        self.indexed.as_deref()
    }

    /// Returns whether the filter selects an object of its kind.
    pub fn matches(&self, object: &Cached) -> bool {
        (self.namespace.is_empty() || self.namespace == object.key.namespace)
            && self
                .requirements
                .iter()
                .all(|requirement| requirement.is_met_by(object))
            && (self.labels.is_empty() || self.labels.matches(object.labels()))
    }
}

impl Requirement {
    fn is_met_by(&self, object: &Cached) -> bool {
        let same = match &self.source {
            Source::Name => object.key.name == self.value,
            Source::Namespace => object.key.namespace == self.value,
            Source::Fields(fields) => {
                let mut values = fields.iter().map(|field| field.read(&object.raw));
                values.find(|value| !value.is_empty()).unwrap_or_default() == self.value
            }
        };
        same == self.equal
    }
}

impl Source {
    fn resolve(kind: &Kind, name: &str) -> Option<Self> {
        let selectable = &kind.definition().selectable;
        match name {
            "metadata.name" => return Some(Self::Name),
            "metadata.namespace" if kind.namespaced || selectable.is_empty() => {
                return Some(Self::Namespace);
            }
            _ => {}
        }
        let selectable = selectable.iter().find(|field| field.name == name)?;
        if selectable.paths == ["metadata.name"] {
            return Some(Self::Name);
        }
        let fields = (selectable.paths.iter()).map(|path| Field::resolve(kind.stored(), path));
        Some(Self::Fields(fields.collect::<Option<_>>()?))
    }
}

/// The error of an unsupported field; upstream, kinds without fields of their own have another one. kubectl adds the
/// resource to its message.
fn unsupported(kind: &Kind, path: &str) -> ApiError {
    let message = match kind.definition().selectable.is_empty() {
        true => format!(
            r#""{path}" is not a known field selector: only "metadata.name", "metadata.namespace""#
        ),
        false => format!("field label not supported: {path}"),
    };
    ApiError::new(Reason::BadRequest, message)
}
