//! Matches requests against `matchConstraints`, `matchResources` and the rules of webhooks.

use setpoint_codec::Kind;
use setpoint_model::selector::Selector;
use setpoint_proto::admissionregistration::{
    MatchResources, NamedRuleWithOperations, RuleWithOperations,
};
use setpoint_proto::meta::LabelSelector;

use super::request_data::RequestData;
use super::{Attributes, Operation};

/// The requests that are selected.
#[derive(Debug)]
pub(super) struct Constraints {
    namespaces: Selector,
    objects: Selector,
    rules: Vec<NamedRuleWithOperations>,
    excluded: Vec<NamedRuleWithOperations>,
    /// Whether a rule for one version of a resource selects requests in its other versions.
    matches_equivalents: bool,
}

impl Constraints {
    /// Reads constraints.
    ///
    /// # Errors
    /// If a selector is malformed.
    pub(super) fn of(resources: &MatchResources) -> Result<Self, String> {
        let selector = |selector: &Option<LabelSelector>| match selector {
            None => Ok(Selector::everything()),
            Some(selector) => {
                Selector::from_label_selector(selector).map_err(|error| error.to_string())
            }
        };
        Ok(Self {
            namespaces: selector(&resources.namespace_selector)?,
            objects: selector(&resources.object_selector)?,
            rules: resources.resource_rules.clone(),
            excluded: resources.exclude_resource_rules.clone(),
            matches_equivalents: resources.match_policy.as_deref() != Some("Exact"),
        })
    }

    /// Returns the kind of the resource that a request is matched as, if it is selected. Without rules, all resources
    /// are.
    ///
    /// # Errors
    /// If the namespace, whose labels count, does not exist.
    pub(super) fn select(
        &self,
        request: &Attributes<'_>,
        data: &RequestData,
    ) -> Result<Option<&'static Kind>, String> {
        let in_namespace = self.selects_namespace(request, data);
        if in_namespace == Ok(false) || !self.selects_object(request) {
            return Ok(None);
        }
        if self.kind_in(&self.excluded, request, data).is_some() {
            return Ok(None);
        }
        let kind = match self.rules.is_empty() {
            true => Some(request.target.served),
            false => self.kind_in(&self.rules, request, data),
        };
        match kind {
            Some(kind) => in_namespace.map(|_| Some(kind)),
            None => Ok(None),
        }
    }

    /// Returns whether the namespace is selected. Requests about cluster-scoped objects are not exempt.
    fn selects_namespace(
        &self,
        request: &Attributes<'_>,
        data: &RequestData,
    ) -> Result<bool, String> {
        let is_namespace = request.is_of_namespace();
        let namespace = request.namespace();
        if self.namespaces.is_empty() || (namespace.is_empty() && !is_namespace) {
            return Ok(true);
        }
        let writes = request.operation != Operation::Delete;
        let is_whole = request.target.subresource.name().is_empty();
        let labels = match request.object {
            Some(object) if is_namespace && writes && is_whole => Some(&object.meta().labels),
            _ => data.namespace.as_ref(),
        };
        let labels = labels.ok_or_else(|| format!("namespaces {namespace:?} not found"))?;
        Ok(self.namespaces.matches(labels))
    }

    /// Returns whether the new or the old object is selected.
    fn selects_object(&self, request: &Attributes<'_>) -> bool {
        let mut objects = request.object.into_iter().chain(request.old);
        self.objects.is_empty() || objects.any(|object| self.objects.matches(&object.meta().labels))
    }

    /// Returns the kind of the resource that some rule selects: that of the request, or else the first
    /// equivalent one of the first rule.
    fn kind_in(
        &self,
        rules: &[NamedRuleWithOperations],
        request: &Attributes<'_>,
        data: &RequestData,
    ) -> Option<&'static Kind> {
        let own = request.target.served;
        if rules.iter().any(|rule| selects(rule, request, own)) {
            return Some(own);
        }
        let mut rules = rules.iter().filter(|_| self.matches_equivalents);
        rules.find_map(|rule| {
            let mut equivalents = data.equivalents.iter().copied();
            equivalents.find(|kind| selects(rule, request, kind))
        })
    }
}

fn selects(named: &NamedRuleWithOperations, request: &Attributes<'_>, kind: &Kind) -> bool {
    let RuleWithOperations { operations, rule } = &named.rule_with_operations;
    let has = |list: &[String], value: &str| list.iter().any(|one| one == "*" || one == value);
    selects_scope(rule.scope.as_deref(), request)
        && has(operations, request.operation.name())
        && has(&rule.api_groups, &kind.group)
        && has(&rule.api_versions, &kind.version)
        && selects_resource(
            &rule.resources,
            &kind.plural,
            request.target.subresource.name(),
        )
        && (named.resource_names.is_empty() || named.resource_names.contains(&request.target.name))
}

/// Returns whether the scope is selected. A Namespace is cluster-scoped.
fn selects_scope(scope: Option<&str>, request: &Attributes<'_>) -> bool {
    let is_namespaced = request.target.kind.namespaced;
    match scope {
        None | Some("*") => true,
        Some("Namespaced") => is_namespaced,
        Some("Cluster") => !is_namespaced,
        Some(_) => false,
    }
}

/// Returns whether a resource and subresource are among those of a rule: `pods`, `pods/log`, `pods/*`, `*/scale`, `*`,
/// `*/*`.
fn selects_resource(resources: &[String], resource: &str, subresource: &str) -> bool {
    resources.iter().any(|one| {
        let (of, part) = one.split_once('/').unwrap_or((one, ""));
        (of == "*" || of == resource) && (part == "*" || part == subresource)
    })
}
