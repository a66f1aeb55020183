//! Writes to revisions.

use std::collections::BTreeMap;

use setpoint_controller::{Claim, Client, Receipt, reference};
use setpoint_model::{Meta, Target};
use setpoint_proto::apps::ControllerRevision;
use setpoint_proto::meta::{ObjectMeta, RawExtension};
use setpoint_proto::{ApiError, Reason, Resource};

use super::{HASH_LABEL, Name, RevisionChange, Snapshot};

/// A write to a revision, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Adopt or release a revision.
    Claim(Claim),
    /// Create the revision of the template.
    Create {
        /// Derived from the template, so that a retry finds the revision of an earlier attempt.
        name: Name,
        /// Its number, which is the highest.
        number: i64,
    },
    /// Make an old revision the newest.
    Renumber {
        /// The revision.
        revision: Target,
        /// Its new number.
        number: i64,
    },
    /// Delete an old revision.
    Delete(Target),
}

impl RevisionChange<'_> {
    /// Returns the write that makes the change, with its reason. `name` is that of a new revision.
    pub fn write(self, name: &Name) -> Option<(Write, &'static str)> {
        match self {
            Self::Unchanged(_) => None,
            Self::Renumber(revision, number) => {
                let revision = Target::of(&revision.meta);
                let renumber = Write::Renumber { revision, number };
                Some((renumber, "an old template is the current one again"))
            }
            Self::Create(number) => {
                let name = name.clone();
                let create = Write::Create { name, number };
                Some((create, "no revision has this template"))
            }
        }
    }
}

impl Write {
    /// Returns the name of the revision.
    pub fn name(&self) -> &str {
        match self {
            Self::Create { name, .. } => &name.name,
            Self::Claim(Claim::Adopt(revision) | Claim::Release(revision))
            | Self::Renumber { revision, .. }
            | Self::Delete(revision) => &revision.key.name,
        }
    }

    /// Executes the write for `owner`, an object of the kind `O`, whose template has these labels and this data.
    ///
    /// # Errors
    /// `Conflict` if the revision has changed; `AlreadyExists` if another object has the name of a new one: once the
    /// cache shows it, [`Snapshot::name`] chooses another one.
    pub async fn act<O: Resource>(
        &self,
        client: &Client,
        owner: &Meta,
        template_labels: &BTreeMap<String, String>,
        data: &Snapshot,
    ) -> Result<Receipt, ApiError> {
        match self {
            Self::Claim(claim) => client.claim::<O, ControllerRevision>(owner, claim).await,
            Self::Create { name, number } => {
                let revision = new_revision::<O>(owner, template_labels, data, name, *number);
                create(client, owner, &revision).await
            }
            Self::Renumber { revision, number } => renumber(client, revision, *number).await,
            Self::Delete(revision) => {
                let deleted = client.delete_unchanged::<ControllerRevision>(revision);
                deleted.await
            }
        }
    }
}

/// Returns the revision of a template. It has the labels of the template and the annotations of the owner, such as
/// `kubernetes.io/change-cause`.
pub fn new_revision<O: Resource>(
    owner: &Meta,
    template_labels: &BTreeMap<String, String>,
    data: &Snapshot,
    name: &Name,
    number: i64,
) -> ControllerRevision {
    let mut labels = template_labels.clone();
    labels.insert(HASH_LABEL.to_owned(), name.hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: name.name.clone(),
            namespace: owner.key.namespace.clone(),
            labels,
            annotations: owner.annotations.clone(),
            owner_references: vec![reference::<O>(owner)],
            ..Default::default()
        },
        data: RawExtension {
            raw: data.0.to_vec().into(),
        },
        revision: number,
    }
}

/// Creates a revision, or takes the one with its name and data that an earlier attempt has created.
async fn create(
    client: &Client,
    owner: &Meta,
    revision: &ControllerRevision,
) -> Result<Receipt, ApiError> {
    let same = |taken: &ControllerRevision| taken.data == revision.data;
    let created = client.create_or_take(owner, revision, same).await?;
    Ok(created.receipt())
}

/// Sets the number of a revision, which must be the version that was seen. The object is replaced and not patched: a
/// patch would write the JSON of its data anew, which must not change.
async fn renumber(client: &Client, seen: &Target, number: i64) -> Result<Receipt, ApiError> {
    let mut revision = client.get::<ControllerRevision>(&seen.key).await?;
    if revision.metadata.uid != seen.uid {
        let message = format!("controller revision {} was replaced", seen.key);
        return Err(ApiError::new(Reason::Conflict, message));
    }
    revision.metadata.resource_version = seen.revision.to_string();
    revision.revision = number;
    Ok(client.update(&revision).await?.receipt())
}
