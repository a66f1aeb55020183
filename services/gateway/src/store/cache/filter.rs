//! Which objects a reader is interested in, made ready to be asked of many.

use setpoint_codec::Kind;
use setpoint_model::selector::{Comparison, Fields, Selector};
use setpoint_proto::{ApiError, Reason};

use super::Cached;
use super::fields::{self, Field};

/// Objects of one kind, of one namespace or all, that two selectors match.
#[derive(Clone, Debug)]
pub struct Filter {
    kind: &'static Kind,
    namespace: String,
    labels: Selector,
    demands: Vec<Demand>,
    node: Option<String>,
}

#[derive(Clone, Debug)]
struct Demand {
    source: Source,
    equal: bool,
    value: String,
}

/// Where the value to compare stands.
#[derive(Clone, Debug)]
enum Source {
    Name,
    Namespace,
    /// The first that is set.
    Fields(Vec<Field>),
}

impl Filter {
    /// All objects of a kind, or those of one namespace unless it is empty.
    pub fn all(kind: &'static Kind, namespace: impl Into<String>) -> Self {
        Self {
            kind,
            namespace: namespace.into(),
            labels: Selector::everything(),
            demands: Vec::new(),
            node: None,
        }
    }

    /// Those whose labels and fields the selectors match.
    ///
    /// # Errors
    /// `BadRequest` when a field cannot be selected by.
    pub fn new(
        kind: &'static Kind,
        namespace: impl Into<String>,
        labels: Selector,
        fields: &Fields,
    ) -> Result<Self, ApiError> {
        let demands = fields.requirements().iter().map(|demand| {
            let source =
                Source::resolve(kind, &demand.path).ok_or_else(|| unsupported(&demand.path))?;
            Ok(Demand {
                source,
                equal: demand.comparison == Comparison::Equal,
                value: demand.value.clone(),
            })
        });
        Ok(Self {
            demands: demands.collect::<Result<_, ApiError>>()?,
            node: fields.exact("spec.nodeName").map(str::to_owned),
            labels,
            ..Self::all(kind, namespace)
        })
    }

    /// Of what kind.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// In which namespace; empty: in all.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Does it look at nothing but the namespace?
    pub fn selects_all(&self) -> bool {
        self.labels.is_empty() && self.demands.is_empty()
    }

    /// The one node whose Pods it asks for: what the index is for.
    pub(super) fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }

    /// Does it let the object through?
    pub fn matches(&self, object: &Cached) -> bool {
        (self.namespace.is_empty() || self.namespace == object.key.namespace)
            && self.demands.iter().all(|demand| demand.is_met_by(object))
            && (self.labels.is_empty() || self.labels.matches(object.labels()))
    }
}

impl Demand {
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
    fn resolve(kind: &Kind, path: &str) -> Option<Self> {
        let paths: &[&str] = match path {
            "metadata.name" => return Some(Self::Name),
            "metadata.namespace" if kind.namespaced => return Some(Self::Namespace),
            _ if !fields::supported(kind).contains(&path) => return None,
            "name" => return Some(Self::Name),
            "source" => &["source.component", "reportingComponent"],
            path => &[path],
        };
        let fields = paths.iter().map(|path| Field::resolve(kind, path));
        Some(Self::Fields(fields.collect::<Option<_>>()?))
    }
}

/// kubectl puts what it asked for around it.
fn unsupported(path: &str) -> ApiError {
    let message = format!("field label not supported: {path}");
    ApiError::new(Reason::BadRequest, message)
}
