//! The permissions of the reader of an explanation on other objects than the explained one, which it may get.

use setpoint_codec::Kind;
use setpoint_model::{Key, Verb};
use setpoint_proto::core::Node;
use setpoint_proto::setpoint::{ObjectRef, Observer, Verdict};

use super::objects::kind;
use crate::registry::{Registry, RequestContext, Target};
use crate::request::Attributes;

/// The user who asks for an explanation.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) registry: &'a Registry,
    pub(super) context: &'a RequestContext,
}

impl Reader<'_> {
    /// Returns whether the user may get an object.
    pub(super) fn may_get(&self, kind: &'static Kind, key: &Key) -> bool {
        self.may(Verb::Get, kind, key)
    }

    /// Returns whether the user may list the objects of a kind in a namespace.
    pub(super) fn may_list(&self, kind: &'static Kind, namespace: &str) -> bool {
        self.may(Verb::List, kind, &Key::new(namespace, ""))
    }

    fn may(&self, verb: Verb, kind: &'static Kind, key: &Key) -> bool {
        let asked = Attributes::of_target(verb, &Target::whole(kind, key));
        self.registry.allows(self.context, &asked)
    }

    /// Removes the reconciles of objects that the user may not get, and the verdicts about such nodes.
    pub(super) fn restrict(&self, observers: &mut [Observer]) {
        for observer in observers {
            observer.reconciles.retain_mut(|reconcile| {
                reconcile.verdicts.retain(|verdict| self.may_see(verdict));
                let subject = reconcile.subject.as_ref();
                subject.is_some_and(|subject| self.may_get_named(subject))
            });
        }
    }

    fn may_see(&self, verdict: &Verdict) -> bool {
        self.may_get(kind::<Node>(), &Key::new("", &verdict.node))
    }

    fn may_get_named(&self, subject: &ObjectRef) -> bool {
        let kind = self.registry.cache().kinds().by_resource(&subject.resource);
        let key = Key::new(&subject.namespace, &subject.name);
        kind.is_some_and(|kind| self.may_get(kind, &key))
    }
}
