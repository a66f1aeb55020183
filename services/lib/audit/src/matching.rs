//! Whether a rule matches a request (upstream: `audit/policy/checker.go`).

use crate::policy::{GroupResources, Rule};

/// A request, as rules see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'a> {
    /// The name of the user; `None` if its credentials were refused.
    pub user: Option<&'a str>,
    /// The groups of the user.
    pub groups: &'a [String],
    /// The verb; for a path of no resource, the method in lower case.
    pub verb: &'a str,
    /// `None` for other paths.
    pub resource: Option<SubjectResource<'a>>,
    /// The path.
    pub path: &'a str,
}

/// The resource of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct SubjectResource<'a> {
    /// Empty for the core group.
    pub group: &'a str,
    /// The plural.
    pub resource: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// Empty for all namespaces, and for cluster-scoped kinds.
    pub namespace: &'a str,
    /// Empty for a collection.
    pub name: &'a str,
}

/// The resources whose bodies hold credentials: group, resource and subresource.
const CONFIDENTIAL: [[&str; 3]; 3] = [
    ["", "secrets", ""],
    ["", "serviceaccounts", "token"],
    ["authentication.k8s.io", "tokenreviews", ""],
];

/// Returns whether the bodies of a request hold credentials.
pub(crate) fn is_confidential(subject: &Subject<'_>) -> bool {
    subject.resource.is_some_and(|of| {
        let [group, resource, part] = [of.group, of.resource, of.subresource];
        CONFIDENTIAL.contains(&[group, resource, part])
    })
}

impl Rule {
    pub(crate) fn matches(&self, subject: &Subject<'_>) -> bool {
        self.matches_user(subject)
            && (self.verbs.is_empty() || has(&self.verbs, subject.verb))
            && self.matches_target(subject)
    }

    fn matches_user(&self, subject: &Subject<'_>) -> bool {
        let Some(user) = subject.user else {
            return self.users.is_empty() && self.user_groups.is_empty();
        };
        let in_group = || {
            subject
                .groups
                .iter()
                .any(|one| self.user_groups.contains(one))
        };
        (self.users.is_empty() || has(&self.users, user))
            && (self.user_groups.is_empty() || in_group())
    }

    fn matches_target(&self, subject: &Subject<'_>) -> bool {
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return subject
                .resource
                .is_some_and(|of| self.matches_resource(&of));
        }
        let urls = &self.non_resource_urls;
        let is_at = |url: &String| matches_path(url, subject.path);
        urls.is_empty() || (subject.resource.is_none() && urls.iter().any(is_at))
    }

    fn matches_resource(&self, of: &SubjectResource<'_>) -> bool {
        (self.namespaces.is_empty() || has(&self.namespaces, of.namespace))
            && (self.resources.is_empty() || self.resources.iter().any(|one| one.matches(of)))
    }

    /// Returns whether the rule names the resource of a request, not only all of them.
    pub(crate) fn names_resource_of(&self, subject: &Subject<'_>) -> bool {
        subject
            .resource
            .is_some_and(|of| self.resources.iter().any(|one| one.names(&of)))
    }
}

impl GroupResources {
    fn matches(&self, of: &SubjectResource<'_>) -> bool {
        if self.group != of.group && self.group != "*" {
            return false;
        }
        // As upstream: names are looked at only where there are resources.
        self.resources.is_empty()
            || (self.matches_name(of) && self.resources.iter().any(|one| matches(one, of)))
    }

    fn matches_name(&self, of: &SubjectResource<'_>) -> bool {
        self.resource_names.is_empty() || has(&self.resource_names, of.name)
    }

    fn names(&self, of: &SubjectResource<'_>) -> bool {
        let named = |one: &String| one.split('/').next() == Some(of.resource) && matches(one, of);
        self.group == of.group && self.matches_name(of) && self.resources.iter().any(named)
    }
}

/// Returns whether a resource of a rule is that of a request: `*`, `pods`, `pods/log`, `pods/*` or `*/log`.
fn matches(rule: &str, of: &SubjectResource<'_>) -> bool {
    match rule.split_once('/') {
        _ if rule == "*" => true,
        None => rule == of.resource && of.subresource.is_empty(),
        Some((resource, "*")) => resource == of.resource,
        Some(("*", part)) => !part.is_empty() && part == of.subresource,
        Some((resource, part)) => {
            resource == of.resource && part == of.subresource && !part.is_empty()
        }
    }
}

fn matches_path(rule: &str, path: &str) -> bool {
    let starts = || {
        let prefix = rule.trim_end_matches('*');
        prefix.len() < rule.len() && path.starts_with(prefix)
    };
    rule == path || starts()
}

fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|one| one == value)
}

#[cfg(test)]
mod tests;
