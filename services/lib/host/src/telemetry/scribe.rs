//! The tracer: decides which spans are drawn, and begins them.

use opentelemetry::trace::{
    SpanBuilder, SpanContext, SpanKind, TraceContextExt as _, TraceFlags, Tracer, TracerProvider,
};
use opentelemetry::{Context, InstrumentationScope};
use opentelemetry_sdk::trace::{
    IdGenerator as _, RandomIdGenerator, Sampler, SamplingDecision, ShouldSample as _,
};

use super::draft::Draft;
use super::parts::Parts;

/// Begins the spans of a process. Clones are the same tracer.
#[derive(Clone, Debug)]
pub struct Scribe {
    parts: Parts,
    sampler: Sampler,
}

impl Scribe {
    pub fn new(parts: Parts, sampler: Sampler) -> Self {
        Self { parts, sampler }
    }
}

/// One tracer for all: who draws a span is in its resource.
impl TracerProvider for Scribe {
    type Tracer = Self;

    fn tracer_with_scope(&self, _scope: InstrumentationScope) -> Self {
        self.clone()
    }
}

impl Tracer for Scribe {
    type Span = Draft;

    fn build_with_context(&self, mut builder: SpanBuilder, context: &Context) -> Draft {
        let ids = RandomIdGenerator::default();
        let (around, nobody) = (context.span(), SpanContext::NONE);
        let (parent, trace) = match around.span_context() {
            parent if parent.is_valid() => (parent, parent.trace_id()),
            _ => (&nobody, ids.new_trace_id()),
        };
        let sampling = self.sampler.should_sample(
            Some(context),
            trace,
            &builder.name,
            builder.span_kind.as_ref().unwrap_or(&SpanKind::Internal),
            builder.attributes.as_deref().unwrap_or_default(),
            builder.links.as_deref().unwrap_or_default(),
        );
        let is_drawn = sampling.decision == SamplingDecision::RecordAndSample;
        let flags = TraceFlags::default().with_sampled(is_drawn);
        let state = sampling.trace_state;
        let span = SpanContext::new(trace, ids.new_span_id(), flags, false, state);
        if !is_drawn {
            return Draft::unsampled(span);
        }
        builder
            .attributes
            .get_or_insert_default()
            .extend(sampling.attributes);
        Draft::begin(self.parts.clone(), span, parent, builder)
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{Span as _, SpanId, TraceId, TraceState};

    use super::*;
    use crate::telemetry::told::Told;

    fn scribe(sampler: Sampler) -> (Scribe, Told) {
        let told = Told::default();
        (Scribe::new(Parts::before(told.clone()), sampler), told)
    }

    fn below(flags: TraceFlags) -> Context {
        let (trace, span) = (TraceId::from(1), SpanId::from(2));
        let parent = SpanContext::new(trace, span, flags, true, TraceState::NONE);
        Context::new().with_remote_span_context(parent)
    }

    fn parent_based() -> Sampler {
        Sampler::ParentBased(Box::new(Sampler::AlwaysOn))
    }

    #[test]
    fn a_root_begins_a_trace_and_a_child_continues_it() {
        let (scribe, told) = scribe(parent_based());
        let root = scribe.start_with_context("root", &Context::new());
        let other = scribe.start_with_context("other", &Context::new());
        assert_ne!(
            root.span_context().trace_id(),
            other.span_context().trace_id()
        );
        let child = scribe.start_with_context("child", &below(TraceFlags::SAMPLED));
        let context = child.span_context();
        assert!(context.is_sampled() && !context.is_remote());
        assert_eq!(context.trace_id(), TraceId::from(1));
        drop(child);
        assert_eq!(told.spans()[0].parent_span_id, SpanId::from(2).to_bytes());
    }

    #[test]
    fn what_is_not_sampled_is_not_drawn_but_passed_on() {
        let (scribe, told) = scribe(parent_based());
        let child = scribe.start_with_context("child", &below(TraceFlags::default()));
        let context = child.span_context().clone();
        assert!(context.is_valid() && !context.is_sampled() && !child.is_recording());
        drop(child);
        assert!(told.names().is_empty());
    }

    #[test]
    fn the_sampler_is_asked() {
        let (scribe, told) = scribe(Sampler::AlwaysOff);
        drop(scribe.start_with_context("root", &Context::new()));
        assert!(told.names().is_empty());
    }
}
