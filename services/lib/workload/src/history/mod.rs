//! The history of a StatefulSet or DaemonSet: its Pod template as ControllerRevisions (upstream's
//! `pkg/controller/history`).
//!
//! The data of a revision is a strategic merge patch that replaces the template, which `kubectl rollout undo` sends as
//! it is. The newest revision has the highest number; a rollback gives the revision of an old template the next number.
#![warn(clippy::arithmetic_side_effects)]

mod write;

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use setpoint_controller::{View, orphan_tag};
use setpoint_model::{Meta, hash};
use setpoint_proto::apps::ControllerRevision;
use setpoint_proto::core::PodTemplateSpec;

pub use write::{Write, new_revision};

/// The label of revisions with the hash of their name. On Pods it is this hash (DaemonSets) or the revision's name
/// (StatefulSets).
pub const HASH_LABEL: &str = "controller-revision-hash";
/// The length at which the owner's name is truncated, so that the name of a revision is a DNS subdomain.
const PREFIX_MAX: usize = 223;

/// The fields of a ControllerRevision that controllers of workloads read.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisionView {
    /// The metadata.
    pub meta: Meta,
    /// The number, which orders the revisions of an owner.
    pub number: i64,
    /// The patch that restores the template.
    pub data: Snapshot,
}

impl View for RevisionView {
    type Object = ControllerRevision;

    fn of(revision: ControllerRevision) -> Self {
        Self {
            meta: Meta::of(&revision.metadata),
            number: revision.revision,
            data: Snapshot(revision.data.raw.as_ref().into()),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Orphans are indexed by namespace.
    fn tag(&self) -> Option<&str> {
        orphan_tag(&self.meta)
    }
}

impl RevisionView {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.meta.key.name
    }

    /// Returns the hash in its label; empty without one.
    pub fn hash(&self) -> &str {
        self.meta.labels.get(HASH_LABEL).map_or("", String::as_str)
    }
}

/// A Pod template as a revision stores it: JSON, so that all clients can read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot(Box<[u8]>);

impl Snapshot {
    /// Encodes a template, with sorted keys.
    pub fn of(template: &PodTemplateSpec) -> Self {
        let mut template = serde_json::to_value(template).unwrap_or_default();
        if let Value::Object(fields) = &mut template {
            fields.insert("$patch".to_owned(), "replace".into());
        }
        let patch = json!({"spec": {"template": template}});
        Self(patch.to_string().into_bytes().into())
    }

    /// Decodes the template; `None` if the data is not a patch of a template.
    pub fn template(&self) -> Option<PodTemplateSpec> {
        let mut patch: Value = serde_json::from_slice(&self.0).ok()?;
        let template = patch.pointer_mut("/spec/template")?.take();
        serde_json::from_value(template).ok()
    }

    /// Returns the hash of the data and a collision count.
    pub fn hash(&self, collisions: i32) -> String {
        let mut salted = self.0.to_vec();
        salted.extend_from_slice(collisions.to_string().as_bytes());
        hash::safe(hash::fnv32(&salted))
    }

    /// Chooses the name of a new revision. The collision count starts at that of the owner's status, and is incremented
    /// while the name is taken by another object.
    pub fn name(&self, owner: &Meta, collisions: i32, taken: impl Fn(&str) -> bool) -> Name {
        let prefix = &owner.key.name;
        let prefix = &prefix[..prefix.floor_char_boundary(PREFIX_MAX)];
        let named = |collisions| {
            let hash = self.hash(collisions);
            let name = format!("{prefix}-{hash}");
            Name {
                name,
                hash,
                collisions,
            }
        };
        let mut names = (collisions..i32::MAX).map(named);
        names
            .find(|name| !taken(&name.name))
            .unwrap_or_else(|| named(i32::MAX))
    }
}

/// The name of a new revision.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Name {
    /// The owner's name and the hash.
    pub name: String,
    /// The hash of data and collision count.
    pub hash: String,
    /// The collision count, which is to be kept in the owner's status.
    pub collisions: i32,
}

/// Writes the name only, since plans are printed for users.
impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.name, f)
    }
}

/// The revisions of an owner, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History<'a>(Vec<&'a RevisionView>);

/// What makes the revision of the owner's template the newest one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RevisionChange<'a> {
    /// Nothing: it is the newest.
    Unchanged(&'a RevisionView),
    /// The revision of an old template gets this number.
    Renumber(&'a RevisionView, i64),
    /// A revision with this number is created.
    Create(i64),
}

impl<'a> History<'a> {
    /// Returns the revisions that an owner controls, by number, creation time and name.
    pub fn of(owner: &Meta, revisions: &'a [Arc<RevisionView>]) -> Self {
        let revisions = revisions.iter().map(|revision| &**revision);
        let mut owned: Vec<_> = revisions
            .filter(|revision| revision.meta.is_owned_by(&owner.uid))
            .collect();
        owned.sort_by_key(|revision| (revision.number, revision.meta.created, revision.name()));
        Self(owned)
    }

    /// Returns the revisions, oldest first.
    pub fn revisions(&self) -> &[&'a RevisionView] {
        &self.0
    }

    /// Returns the revision with this name.
    pub fn get(&self, name: &str) -> Option<&'a RevisionView> {
        let mut revisions = self.0.iter().copied();
        revisions.find(|revision| revision.name() == name)
    }

    /// Returns the newest revision of exactly this template.
    pub fn equal(&self, template: &Snapshot) -> Option<&'a RevisionView> {
        let mut newest_first = self.0.iter().rev().copied();
        newest_first.find(|revision| revision.data == *template)
    }

    /// Returns the number of a revision that becomes the newest.
    pub fn next_number(&self) -> i64 {
        let newest = self.0.last().map_or(0, |newest| newest.number);
        newest.saturating_add(1)
    }

    /// Returns what makes the revision of a template the newest.
    ///
    /// The newest revision is that of the template also if its JSON differs but means the same, as that of other
    /// versions of Kubernetes may: an update of the control plane alone must not restart Pods.
    pub fn change(&self, template: &Snapshot) -> RevisionChange<'a> {
        let newest = self.0.last().copied();
        match (self.equal(template), newest) {
            (Some(equal), Some(newest)) if equal.data == newest.data => {
                RevisionChange::Unchanged(newest)
            }
            (Some(equal), _) => RevisionChange::Renumber(equal, self.next_number()),
            (None, Some(newest)) if is_same_template(&newest.data, template) => {
                RevisionChange::Unchanged(newest)
            }
            _ => RevisionChange::Create(self.next_number()),
        }
    }

    /// Returns the revisions to be deleted: the oldest of those that are not live, except for `limit` of them. A
    /// negative limit keeps all.
    pub fn surplus(
        &self,
        limit: i32,
        is_live: impl Fn(&RevisionView) -> bool,
    ) -> Vec<&'a RevisionView> {
        let mut old = self.0.clone();
        old.retain(|revision| !is_live(revision));
        let kept = usize::try_from(limit).unwrap_or(usize::MAX);
        old.truncate(old.len().saturating_sub(kept));
        old.retain(|revision| !revision.meta.deleting);
        old
    }
}

fn is_same_template(one: &Snapshot, other: &Snapshot) -> bool {
    let template = one.template();
    template.is_some() && template == other.template()
}

#[cfg(test)]
mod tests {
    use setpoint_model::Key;
    use setpoint_proto::core::Container;
    use setpoint_proto::meta::{OwnerReference, RawExtension};

    use super::*;

    fn owner() -> Meta {
        Meta {
            key: Key::new("default", "web"),
            uid: "u1".into(),
            ..Default::default()
        }
    }

    fn template(image: &str) -> PodTemplateSpec {
        let mut template = PodTemplateSpec::default();
        template.metadata.labels.insert("app".into(), "web".into());
        template.spec.containers.push(Container {
            name: "main".into(),
            image: image.into(),
            ..Default::default()
        });
        template
    }

    fn revision(image: &str, number: i64) -> Arc<RevisionView> {
        let data = Snapshot::of(&template(image));
        let name = data.name(&owner(), 0, |_| false);
        let mut revision = ControllerRevision {
            data: RawExtension {
                raw: data.0.to_vec().into(),
            },
            revision: number,
            ..Default::default()
        };
        revision.metadata.name = name.name;
        revision.metadata.owner_references.push(OwnerReference {
            uid: "u1".into(),
            controller: Some(true),
            ..Default::default()
        });
        RevisionView::of(revision).into()
    }

    #[test]
    fn the_data_is_the_patch_that_upstream_stores() {
        let data = Snapshot::of(&template("nginx:1"));
        let json = r#"{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"nginx:1","name":"main","resources":{}}]}}}}"#;
        assert_eq!(std::str::from_utf8(&data.0), Ok(json));
        assert_eq!(data.template(), Some(template("nginx:1")));
        assert_eq!(Snapshot(b"{}".to_vec().into()).template(), None);
    }

    #[test]
    fn a_taken_name_increments_the_collision_count() {
        let data = Snapshot::of(&template("nginx:1"));
        let first = data.name(&owner(), 0, |_| false);
        assert_eq!(first.name, format!("web-{}", first.hash));
        let second = data.name(&owner(), 0, |name| name == first.name);
        assert_eq!((second.collisions, &second.hash), (1, &data.hash(1)));
        assert_ne!(first.name, second.name);
        assert_eq!(data.name(&owner(), 1, |_| false), second);
    }

    #[test]
    fn a_long_name_of_the_owner_is_truncated() {
        let mut owner = owner();
        owner.key.name = "x".repeat(253);
        let name = Snapshot::default().name(&owner, 0, |_| false);
        assert_eq!(name.name, format!("{}-{}", "x".repeat(223), name.hash));
    }

    #[test]
    fn a_new_template_gets_a_revision_and_an_old_one_the_next_number() {
        let revisions = [revision("b", 5), revision("a", 2)];
        let of = |image: &str| Snapshot::of(&template(image));
        let history = History::of(&owner(), &revisions);
        assert_eq!(
            history.change(&of("b")),
            RevisionChange::Unchanged(&revisions[0])
        );
        assert_eq!(
            history.change(&of("a")),
            RevisionChange::Renumber(&revisions[1], 6)
        );
        assert_eq!(history.change(&of("c")), RevisionChange::Create(6));
        let other = Meta {
            uid: "u2".into(),
            ..owner()
        };
        let none = History::of(&other, &revisions);
        assert_eq!(none.change(&of("a")), RevisionChange::Create(1));
    }

    #[test]
    fn json_of_another_version_is_the_same_template() {
        let mut newest = (*revision("a", 1)).clone();
        let json = String::from_utf8(newest.data.0.to_vec()).unwrap();
        let json = json.replace(r#"{"labels"#, r#"{"creationTimestamp":null,"labels"#);
        newest.data = Snapshot(json.into_bytes().into());
        let revisions = [Arc::new(newest)];
        let history = History::of(&owner(), &revisions);
        let change = history.change(&Snapshot::of(&template("a")));
        assert_eq!(change, RevisionChange::Unchanged(&revisions[0]));
    }

    #[test]
    fn the_oldest_revisions_that_are_not_live_are_surplus() {
        let revisions = [
            revision("a", 1),
            revision("b", 2),
            revision("c", 3),
            revision("d", 4),
        ];
        let history = History::of(&owner(), &revisions);
        let surplus = |limit| {
            let surplus = history.surplus(limit, |revision| [1, 4].contains(&revision.number));
            surplus
                .iter()
                .map(|revision| revision.number)
                .collect::<Vec<_>>()
        };
        assert_eq!(surplus(0), [2, 3]);
        assert_eq!(surplus(1), [2]);
        assert!(surplus(2).is_empty() && surplus(-1).is_empty());
    }
}
