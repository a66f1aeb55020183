//! Links a write's trace to that of the change it probably reacts to.
//!
//! Setpoint's controllers hand the trace on to which they react; an operator that knows nothing of traces does not, so
//! that each of its writes begins one. The link says what it most likely reacted to: the last write of the controlling
//! owner or, if it reports a status or adds a finalizer, of the object itself.

use setpoint_codec::Object;
use setpoint_kinds as kinds;
use setpoint_model::{Key, owner};
use setpoint_proto::Cause;
use setpoint_telemetry::Span;

use crate::registry::{AtLeast, Registry, RequestContext};
use crate::write::current::Current;

impl Registry {
    /// Links the span of a create, unless it continues a trace.
    pub(crate) async fn link_create(&self, context: &RequestContext, new: &dyn Object) {
        if begins_trace(context) {
            let cause = self.cause_of_owner(new).await;
            Span::current().link(&cause);
        }
    }

    /// Links the span of an update, unless it continues a trace.
    pub(crate) async fn link_update(
        &self,
        context: &RequestContext,
        old: &Current,
        new: &dyn Object,
    ) {
        if !begins_trace(context) {
            return;
        }
        let cause = match kinds::of(new.kind()).intent_changed(new, &*old.object) {
            true => self.cause_of_owner(&*old.object).await,
            false => old.cause.clone(),
        };
        let cause = cause.filter(|cause| cause.writer != context.manager);
        Span::current().link(&cause);
    }

    /// Returns the cause of the last write of the controlling owner, if the cache has it.
    async fn cause_of_owner(&self, object: &dyn Object) -> Option<Cause> {
        let owner = owner::controller_of(object.meta())?;
        let kinds = self.cache().kinds();
        let kind = kinds.by_kind(&owner.api_version, &owner.kind)?.stored();
        let namespace = match kind.namespaced {
            true => object.meta().namespace.as_str(),
            false => "",
        };
        let key = Key::new(namespace, &owner.name);
        let found = self.cache().get(kind, &key, AtLeast::Any).await;
        found.ok()??.cause()
    }
}

/// Returns whether the caller handed on no trace, and the write is traced.
fn begins_trace(context: &RequestContext) -> bool {
    context.trace.parent.is_none() && Span::current().is_recording()
}
