//! Lets users change the owners of an object only if they may delete it, and let it block the deletion of an owner only
//! if they may set finalizers on that (upstream: the plugin OwnerReferencesPermissionEnforcement, which is off by
//! default).

use std::sync::Arc;

use setpoint_codec::{Kind, KindTable};
use setpoint_kinds::Subresource;
use setpoint_proto::core::Pod;
use setpoint_proto::meta::OwnerReference;

use super::{Plugin, Step};
use crate::admission::{Attributes, Operation, Reader};
use crate::errors;
use crate::request::authorization::{Authorizer, Decision};
use crate::request::{self, Resource};

/// The plugin.
pub(in crate::admission) struct OwnerReferencesPermissionEnforcement {
    authorizer: Arc<Authorizer>,
    /// The kinds of owners.
    kinds: Arc<KindTable>,
}

impl Plugin for OwnerReferencesPermissionEnforcement {
    fn check<'a>(&'a self, request: Attributes<'a>, _reader: &'a dyn Reader) -> Option<Step<'a>> {
        let writes = [Operation::Create, Operation::Update].contains(&request.operation);
        if !writes || request.is_admitted || is_pod_status(request) {
            return None;
        }
        let new = &request.object?.meta().owner_references;
        let old = request
            .old
            .map(|old| old.meta().owner_references.as_slice());
        let old = old.unwrap_or_default();
        if new == old {
            return None;
        }
        Some(Box::pin(async move {
            let checked = self.check_change(request, old, new);
            checked.map_err(|why| errors::forbidden(request.target, &why, None))
        }))
    }
}

impl OwnerReferencesPermissionEnforcement {
    /// Returns the plugin.
    pub(in crate::admission) const fn new(
        authorizer: Arc<Authorizer>,
        kinds: Arc<KindTable>,
    ) -> Self {
        Self { authorizer, kinds }
    }

    fn check_change(
        &self,
        request: Attributes<'_>,
        old: &[OwnerReference],
        new: &[OwnerReference],
    ) -> Result<(), String> {
        // Whoever creates an object could as well not create it.
        if request.operation != Operation::Create {
            let decision = self.ask(request, "delete", of_object(request));
            require(
                decision,
                "cannot set an ownerRef on a resource you can't delete",
            )?;
        }
        let blocking: Vec<_> = new_blocking(old, new).collect();
        if blocking.is_empty() || self.ask(request, "update", finalizers_of_all()).allowed {
            return Ok(());
        }
        blocking
            .into_iter()
            .try_for_each(|owner| self.check_owner(request, owner))
    }

    fn check_owner(&self, request: Attributes<'_>, owner: &OwnerReference) -> Result<(), String> {
        let OwnerReference {
            api_version, kind, ..
        } = owner;
        let found = self.kinds.by_kind(api_version, kind).ok_or_else(|| {
            format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion \
                {api_version} Kind {kind}: no matches for kind {kind:?} in version {api_version:?}"
            )
        })?;
        let decision = self.ask(request, "update", finalizers_of(found, owner, request));
        require(
            decision,
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on",
        )
    }

    fn ask(&self, request: Attributes<'_>, verb: &'static str, resource: Resource) -> Decision {
        let attributes = request::Attributes::of_resource(verb, resource);
        self.authorizer.decide(&request.context.user, &attributes)
    }
}

/// Returns an error with upstream's text, which ends with an error of the authorizer, if the decision is no.
fn require(decision: Decision, why: &str) -> Result<(), String> {
    match decision.allowed {
        true => Ok(()),
        false => Err(format!("{why}: {}, <nil>", decision.reason)),
    }
}

/// The status of a Pod cannot change its owners.
fn is_pod_status(request: Attributes<'_>) -> bool {
    let is_status = request.target.subresource == Subresource::Status;
    is_status && *request.target.kind == *setpoint_codec::kind_of::<Pod>()
}

/// Returns the references that block the deletion of their owners and did not before.
fn new_blocking<'a>(
    old: &'a [OwnerReference],
    new: &'a [OwnerReference],
) -> impl Iterator<Item = &'a OwnerReference> {
    let blocks = |owner: &OwnerReference| owner.block_owner_deletion == Some(true);
    new.iter().filter(move |owner| {
        // Of several references to one owner, the last counts.
        let before = old.iter().rfind(|before| before.uid == owner.uid);
        blocks(owner) && !before.is_some_and(blocks)
    })
}

fn of_object(request: Attributes<'_>) -> Resource {
    let target = request.target;
    Resource {
        group: target.served.group.clone(),
        version: target.served.version.clone(),
        resource: target.served.plural.clone(),
        subresource: target.subresource.name().to_owned(),
        namespace: request.namespace().to_owned(),
        name: target.name.clone(),
    }
}

fn finalizers_of(kind: &Kind, owner: &OwnerReference, request: Attributes<'_>) -> Resource {
    Resource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        resource: kind.plural.clone(),
        subresource: "finalizers".into(),
        // An owner is in the namespace of what it owns.
        namespace: match kind.namespaced {
            true => request.namespace().to_owned(),
            false => String::new(),
        },
        name: owner.name.clone(),
    }
}

fn finalizers_of_all() -> Resource {
    let all = || "*".to_owned();
    Resource {
        group: all(),
        version: all(),
        resource: all(),
        subresource: "finalizers".into(),
        name: all(),
        ..Resource::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_references_that_begin_to_block_are_checked() {
        let owner = |uid: &str, blocks: Option<bool>| OwnerReference {
            uid: uid.into(),
            block_owner_deletion: blocks,
            ..OwnerReference::default()
        };
        let old = [
            owner("a", Some(true)),
            owner("b", Some(false)),
            owner("c", None),
        ];
        let new = [
            owner("a", Some(true)),
            owner("b", Some(true)),
            owner("c", Some(true)),
            owner("d", Some(true)),
            owner("e", None),
        ];
        let uids = |old: &[OwnerReference], new: &[OwnerReference]| {
            let blocking = new_blocking(old, new);
            blocking.map(|owner| owner.uid.clone()).collect::<String>()
        };
        assert_eq!(uids(&old, &new), "bcd");
        assert_eq!(uids(&[], &new), "abcd");
        assert_eq!(uids(&new, &old), "");
    }
}
