//! Rules of roles, one at a time.

use setpoint_proto::rbac::PolicyRule;

use super::request::{Request, Target};

/// Returns whether a rule allows a request.
pub(crate) fn allows(rule: &PolicyRule, request: &Request<'_>) -> bool {
    let has = |list: &[String], text: &str| list.iter().any(|one| one == "*" || one == text);
    has(&rule.verbs, request.verb)
        && match request.target {
            Target::Path(path) => rule
                .non_resource_urls
                .iter()
                .any(|url| covers_url(url, path)),
            Target::Resource(of) => {
                let matches = |text: &String| match text.split_once('/') {
                    None => text == "*" || of.subresource.is_empty() && text == of.resource,
                    Some((resource, part)) => {
                        !part.is_empty()
                            && part == of.subresource
                            && (resource == "*" || resource == of.resource)
                    }
                };
                let names = &rule.resource_names;
                has(&rule.api_groups, of.group)
                    && rule.resources.iter().any(matches)
                    && (names.is_empty() || names.iter().any(|name| name == of.name))
            }
        }
}

/// Returns whether a URL of a rule, which may end with `*`, is a path or has it below.
pub(crate) fn covers_url(url: &str, path: &str) -> bool {
    url == path || url.ends_with('*') && path.starts_with(url.trim_end_matches('*'))
}

/// Returns the number of combinations of the verbs of a rule with its groups, resources and names, and with its paths.
pub(crate) fn combinations(rule: &PolicyRule) -> usize {
    let product = |factors: &[usize]| {
        let factors = factors.iter();
        factors.fold(1, |product: usize, factor| product.saturating_mul(*factor))
    };
    let (verbs, names) = (rule.verbs.len(), rule.resource_names.len().max(1));
    let resources = product(&[verbs, rule.api_groups.len(), rule.resources.len(), names]);
    resources.saturating_add(product(&[verbs, rule.non_resource_urls.len()]))
}
