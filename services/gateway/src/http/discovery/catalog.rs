//! The versions of groups that are served, in the order of discovery.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use setpoint_codec::Kind;
use setpoint_proto::ApiError;

use super::{aggregated, kinds_of, legacy, metrics, order, served};
use crate::aggregation::{Remote, aggregate};
use crate::registry::Registry;

/// The versions of groups.
pub(super) struct Catalog(Vec<Version>);

/// A version of a group.
pub(super) struct Version {
    pub(super) group: String,
    pub(super) version: String,
    /// The priorities of the group and of the version, highest first.
    priorities: (i32, i32),
    source: Source,
}

/// The server of a version.
enum Source {
    /// The gateway, with these kinds.
    Kinds(Vec<&'static Kind>),
    /// The adapter of metrics, with these resources as they are listed.
    Metrics(Vec<Value>),
    /// Another server.
    Remote(Arc<Remote>),
}

impl Catalog {
    /// Returns all versions. One that another server serves replaces that of the gateway.
    ///
    /// # Errors
    /// If the cache is not loaded in time.
    pub(super) async fn of(registry: &Registry) -> Result<Self, ApiError> {
        let remotes = registry.aggregator().used(registry).await?;
        Ok(Self::with(registry, remotes))
    }

    /// Returns the versions that the gateway serves, those of the core group included.
    pub(super) fn local(registry: &Registry) -> Self {
        Self::with(registry, Vec::new())
    }

    fn with(registry: &Registry, remotes: Vec<Arc<Remote>>) -> Self {
        let kinds = served(registry);
        let local = super::group_versions(&kinds).into_iter();
        let local = local.map(|(group, version)| Version::of_kinds(&kinds, group, version));
        let local = local.chain(metrics::versions(registry));
        let is_remote = |one: &Version| {
            let mut names = remotes
                .iter()
                .map(|remote| (&*remote.group, &*remote.version));
            names.any(|name| name == one.name())
        };
        let mut versions: Vec<_> = local.filter(|one| !is_remote(one)).collect();
        versions.extend(remotes.into_iter().map(Version::of_remote));
        Self(sorted(versions))
    }

    /// Returns the versions of each group, the preferred one first.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[Version]> {
        self.0.chunk_by(|a, b| a.group == b.group)
    }

    /// Returns the versions of a group.
    pub(super) fn group(&self, name: &str) -> Option<&[Version]> {
        self.groups()
            .find(|versions| versions.iter().any(|one| one.group == name))
    }

    /// Returns a version of a group.
    pub(super) fn version(&self, group: &str, version: &str) -> Option<&Version> {
        self.0.iter().find(|one| one.name() == (group, version))
    }

    pub(super) fn versions(&self) -> impl Iterator<Item = &Version> {
        self.0.iter()
    }
}

/// Sorts versions: groups by the highest priority of their versions, and versions by theirs; then by name and maturity.
fn sorted(mut versions: Vec<Version>) -> Vec<Version> {
    let mut highest = HashMap::<String, i32>::new();
    for one in &versions {
        let highest = highest.entry(one.group.clone()).or_insert(i32::MIN);
        *highest = one.priorities.0.max(*highest);
    }
    versions.sort_by_cached_key(|one| {
        let of_group = highest.get(&one.group).copied();
        let of_version = (
            Reverse(one.priorities.1),
            Reverse(order::maturity(&one.version)),
        );
        (
            Reverse(of_group),
            one.group.clone(),
            of_version,
            one.version.clone(),
        )
    });
    versions
}

impl Version {
    fn of_kinds(kinds: &[&'static Kind], group: &str, version: &str) -> Self {
        let kinds: Vec<_> = kinds_of(kinds, group, version).collect();
        let priorities = kinds.first().map(|kind| order::priorities(kind));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            priorities: priorities.unwrap_or_default(),
            source: Source::Kinds(kinds),
        }
    }

    fn of_remote(remote: Arc<Remote>) -> Self {
        Self {
            group: remote.group.clone(),
            version: remote.version.clone(),
            priorities: remote.priorities,
            source: Source::Remote(remote),
        }
    }

    /// Returns a version of a group of metrics.
    pub(super) fn of_metrics(
        group: &str,
        version: &str,
        priorities: (i32, i32),
        resources: Vec<Value>,
    ) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            priorities,
            source: Source::Metrics(resources),
        }
    }

    fn name(&self) -> (&str, &str) {
        (&self.group, &self.version)
    }

    pub(super) fn group_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Returns whether the gateway has an OpenAPI document of v3 about it.
    pub(super) fn is_documented(&self) -> bool {
        match &self.source {
            Source::Kinds(_) => true,
            Source::Metrics(_) => false,
            Source::Remote(remote) => remote.server.documents().openapi.is_some(),
        }
    }

    /// Returns the entry of the aggregated document. That of a server that does not answer is stale.
    pub(super) fn aggregated(&self) -> Value {
        let (resources, is_current) = match &self.source {
            Source::Kinds(kinds) => (
                kinds.iter().copied().map(aggregated::resource).collect(),
                true,
            ),
            Source::Metrics(resources) => (aggregate(resources, &self.group, &self.version), true),
            Source::Remote(remote) => {
                let documents = remote.server.documents();
                (documents.resources.clone(), documents.is_current)
            }
        };
        let mut entry = json!({
            "version": self.version,
            "freshness": if is_current { "Current" } else { "Stale" },
        });
        if is_current || !resources.is_empty() {
            entry["resources"] = resources.into();
        }
        entry
    }

    /// Returns the list of its resources; `None` if another server has it.
    pub(super) fn resources(&self) -> Option<Value> {
        let resources: Value = match &self.source {
            Source::Kinds(kinds) => kinds.iter().copied().flat_map(legacy::resources).collect(),
            Source::Metrics(resources) => resources.clone().into(),
            Source::Remote(_) => return None,
        };
        let mut list = json!({
            "kind": "APIResourceList",
            "groupVersion": self.group_version(),
            "resources": resources,
        });
        // Upstream's list of the core group has none.
        if !self.group.is_empty() {
            list["apiVersion"] = "v1".into();
        }
        Some(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_versions_are_in_the_order_of_their_priorities() {
        let version = |group: &str, version: &str, priorities| {
            Version::of_metrics(group, version, priorities, Vec::new())
        };
        let sorted = sorted(vec![
            version("b.io", "v1", (1000, 15)),
            version("a.io", "v1", (1000, 15)),
            version("c.io", "v1alpha1", (100, 400)),
            version("c.io", "v1", (2000, 15)),
            version("c.io", "v2", (100, 15)),
            version("", "v1", (18_000, 1)),
        ]);
        let names: Vec<_> = sorted.iter().map(Version::group_version).collect();
        let expected = [
            "v1",
            "c.io/v1alpha1",
            "c.io/v2",
            "c.io/v1",
            "a.io/v1",
            "b.io/v1",
        ];
        assert_eq!(names, expected);
    }
}
