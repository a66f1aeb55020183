//! The attributes of a request, by which plugins, policies and webhooks select and validate it.

use setpoint_codec::{Kind, Object, kind_of, kinds};
use setpoint_kinds::{Subresource, Target};
use setpoint_proto::Cause;
use setpoint_proto::core::Namespace;
use setpoint_proto::meta::DeleteOptions;

use crate::request_context::RequestContext;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A request that is about to be committed.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub context: &'a RequestContext,
    /// The object, with the subresource and the version of the request.
    pub target: &'a Target,
    /// The subresource of the request: that of the target, but for `scale`, with which the whole object is written.
    pub subresource: Subresource,
    pub operation: Operation,
    /// The new object, or the body of the subresource; `None` for a deletion.
    pub object: Option<&'a dyn Object>,
    /// The current object; `None` for a create.
    pub old: Option<&'a dyn Object>,
    /// The cause of the last write of the current object.
    pub old_cause: Option<&'a Cause>,
    /// The options of a deletion.
    pub options: Option<&'a DeleteOptions>,
    /// Whether it is a part of a request that was admitted as a whole, such as the deletion by an eviction.
    pub is_admitted: bool,
}

impl<'a> Attributes<'a> {
    /// Returns the attributes of a create, without the object.
    pub(crate) fn of_create(context: &'a RequestContext, target: &'a Target) -> Self {
        Self {
            context,
            target,
            subresource: target.subresource,
            operation: Operation::Create,
            object: None,
            old: None,
            old_cause: None,
            options: None,
            is_admitted: false,
        }
    }

    /// Returns the attributes with another object.
    pub(crate) fn with_object<'b>(self, object: Option<&'b dyn Object>) -> Attributes<'b>
    where
        'a: 'b,
    {
        Attributes { object, ..self }
    }

    /// Returns whether the request is about a Namespace.
    pub(super) fn is_of_namespace(&self) -> bool {
        *self.target.kind == *kind_of::<Namespace>()
    }

    /// Returns the namespace of the request. A Namespace that exists is in itself, as upstream's requests say.
    pub(super) fn namespace(&self) -> &str {
        match self.is_of_namespace() && self.operation != Operation::Create {
            true => &self.target.name,
            false => &self.target.namespace,
        }
    }

    /// Returns the kind of the object of the request: that of its resource or, for a subresource, of the body.
    pub(super) fn kind(&self) -> &'static Kind {
        let body = self.object.or(self.old).map(Object::kind);
        match body {
            Some(body) if body.stored() != self.target.kind => body,
            _ => self.target.served,
        }
    }

    /// Returns the kind of the object for a policy or webhook that has matched the resource of a kind. The body of a
    /// subresource has one version only.
    pub(super) fn kind_as(&self, matched: &'static Kind) -> &'static Kind {
        let own = self.kind();
        match own == self.target.served {
            true => matched,
            false => own,
        }
    }

    /// Returns the kinds whose resources hold the same objects: the other versions of that of the request.
    pub(super) fn equivalents(&self) -> Vec<&'static Kind> {
        let served = self.target.served;
        let is_other = |kind: &&'static Kind| **kind != *served;
        match served.custom_resource() {
            Some(resource) => resource.served().filter(is_other).collect(),
            None => {
                let all = kinds().served();
                let same = all.filter(|kind| kind.stored() == self.target.kind);
                same.filter(is_other).collect()
            }
        }
    }
}
