//! The cascade that a reconcile belongs to: its parent among the causes, the waits before it, and the context of its
//! writes.
//!
//! A reconcile continues the youngest of the traces of its causes, after the last write of that trace; the other causes
//! are linked. 2026-11: we chose the youngest trace over the first one: what a reconcile does is explained by the
//! newest intent, and an old trace must not swallow what others began since. It would be wrong if a newer trace woke
//! keys that it has nothing to do with; those reconciles find nothing to do and leave no span.

use std::future::Future;
use std::time::Duration;

use opentelemetry::trace::SpanBuilder;
use opentelemetry::{KeyValue, Value};
use setpoint_model::{Key, Meta};
use setpoint_proto::trace::{duration_ns, now_ns};
use setpoint_proto::{Cause, TraceContext};
use setpoint_telemetry::{Settings, Span, namespace_attribute};
use tokio::time::Instant;

use crate::Ticket;
use crate::queue::Rest;

/// The attribute with the name of a span's object.
const OBJECT: &str = "setpoint.object";

/// Shorter waits leave no span: they cannot be seen beside what they delay.
const NOTICEABLE_NS: i64 = 100_000;

tokio::task_local! {
    static CONTEXT: TraceContext;
}

/// A reconcile's span and its place in the traces of its causes.
pub struct Cascade {
    span: Span,
    context: TraceContext,
}

impl Cascade {
    /// Starts the span of a reconcile after its causes, and records the waits before it.
    ///
    /// `observed` is when the caches were recent enough to decide.
    pub fn begin(mut reconcile: SpanBuilder, ticket: &Ticket<Key>, observed: Instant) -> Self {
        let origin = Origin::of(&ticket.causes, now_ns(), Settings::get().trace_age);
        let parent = origin.parent.and_then(|cause| cause.traceparent);
        let object = KeyValue::new(OBJECT, ticket.key.to_string());
        if let Some(cause) = origin
            .parent
            .filter(|_| parent.is_some_and(|it| it.is_sampled()))
        {
            record_waits(cause, ticket, observed, &object);
        }
        let attempt = KeyValue::new("setpoint.attempt", i64::from(ticket.attempt));
        let known = [object, attempt].into_iter();
        let known = known.chain(namespace_attribute(&ticket.key.namespace));
        reconcile.attributes.get_or_insert_default().extend(known);
        let span = Span::start(reconcile, parent);
        span.link(origin.links);
        Self {
            span,
            context: origin.context,
        }
    }

    /// Sets the object of the reconcile, and its version.
    pub fn about(&self, kind: &str, meta: &Meta) {
        let Meta {
            key,
            uid,
            revision,
            generation,
            ..
        } = meta;
        self.span.set_attributes([
            KeyValue::new(format!("k8s.{kind}.name"), key.name.clone()),
            KeyValue::new(format!("k8s.{kind}.uid"), uid.clone()),
            KeyValue::new("setpoint.generation", *generation),
            KeyValue::new("setpoint.revision", revision.to_string()),
        ]);
    }

    /// Sets an attribute of the reconcile.
    pub fn label(&self, key: &'static str, value: impl Into<Value>) {
        self.span.set_attributes([KeyValue::new(key, value)]);
    }

    /// Sets how the reconcile ended.
    pub fn ended(&self, outcome: &'static str, error: Option<&dyn std::fmt::Display>) {
        self.label("setpoint.outcome", outcome);
        if let Some(error) = error {
            self.span.set_error(error.to_string());
        }
    }

    /// Runs the reconcile's work, whose writes belong to the cascade. Tasks that are spawned inside do not.
    pub async fn run<F: Future>(&self, work: F) -> F::Output {
        CONTEXT.scope(self.context, self.span.in_scope(work)).await
    }

    /// Returns the reconcile's span.
    pub const fn span(&self) -> &Span {
        &self.span
    }
}

/// Runs work that belongs to a cascade, perhaps after its reconcile.
pub(crate) async fn in_context<F: Future>(context: TraceContext, work: F) -> F::Output {
    CONTEXT.scope(context, work).await
}

/// Returns the context of writes made in a span; the default one where a cascade begins.
pub(crate) fn context(span: &Span) -> TraceContext {
    let context = CONTEXT.try_get().unwrap_or_default();
    context.within(span.traceparent())
}

/// The order of causes: traced before untraced, then the youngest trace, then its last write.
pub(crate) fn rank(cause: &Cause) -> (bool, i64, i64) {
    (
        cause.traceparent.is_some(),
        cause.began_ns,
        cause.written_ns,
    )
}

/// The causes of a reconcile, sorted.
#[derive(Debug, Default, PartialEq)]
struct Origin<'c> {
    /// The write whose trace is continued; `None` for the root of a trace.
    parent: Option<&'c Cause>,
    /// The other causes.
    links: Vec<&'c Cause>,
    /// The context of the reconcile's writes.
    context: TraceContext,
}

impl<'c> Origin<'c> {
    fn of(causes: &'c [Cause], now_ns: i64, age: Duration) -> Self {
        // Of equals the first: `max_by_key` would take the last.
        let newest = causes.iter().rev().max_by_key(|cause| rank(cause));
        let Some(newest) = newest else {
            return Self::default();
        };
        let others = causes.iter().filter(|&cause| cause != newest);
        match is_old(newest, now_ns, age) {
            true => Self {
                links: std::iter::once(newest).chain(others).collect(),
                ..Self::default()
            },
            false => Self {
                parent: Some(newest),
                links: others.collect(),
                context: TraceContext::after(newest),
            },
        }
    }
}

fn is_old(cause: &Cause, now_ns: i64, age: Duration) -> bool {
    let lived = now_ns.saturating_sub(cause.began_ns);
    cause.began_ns > 0 && lived > duration_ns(age)
}

/// Records the waits between a write and the reconcile that it caused, as spans beside the reconcile.
///
/// ```text
/// written ─delivery─▶ queued ─queue─▶ taken ─barrier─▶ observed ─plan─▶ reconcile
///         └takeover─▶ (written before this process began to lead)
///          failed ─backoff─▶ queued       looks again ─rest─▶ queued
/// ```
fn record_waits(cause: &Cause, ticket: &Ticket<Key>, observed: Instant, object: &KeyValue) {
    let (now, now_ns) = (Instant::now(), now_ns());
    let moment =
        |at: Instant| now_ns.saturating_sub(duration_ns(now.saturating_duration_since(at)));
    let (waits, written) = (&ticket.waits, cause.written_ns);
    let queued = moment(waits.queued).max(written);
    let taken = moment(waits.taken).max(queued);
    let observed = moment(observed).max(taken);
    let opened = moment(waits.opened).clamp(written, queued);
    let before = match waits.rest {
        Some((rest, since)) => [
            (rest.name(), moment(since).max(written), queued),
            ("", 0, 0),
        ],
        None => [("takeover", written, opened), ("delivery", opened, queued)],
    };
    let after = [
        ("queue", queued, taken),
        ("barrier", taken, observed),
        ("plan", observed, now_ns),
    ];
    for (name, from_ns, to_ns) in before.into_iter().chain(after) {
        if to_ns - from_ns >= NOTICEABLE_NS {
            let wait = SpanBuilder::from_name(name).with_attributes([object.clone()]);
            Span::record(wait, cause.traceparent, from_ns, to_ns);
        }
    }
}

impl Rest {
    const fn name(self) -> &'static str {
        match self {
            Self::Backoff => "backoff",
            Self::Again => "rest",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_secs(600);
    const SECOND: i64 = 1_000_000_000;

    fn cause(trace: u8, began: i64, written: i64) -> Cause {
        Cause {
            traceparent: format!("00-{trace:032x}-{written:016x}-01").parse().ok(),
            began_ns: began * SECOND,
            written_ns: written * SECOND,
            depth: 2,
            ..Cause::default()
        }
    }

    fn origin(causes: &[Cause], now: i64) -> Origin<'_> {
        Origin::of(causes, now * SECOND, AGE)
    }

    #[test]
    fn of_one_trace_the_last_write_is_the_parent() {
        let causes = [cause(1, 10, 11), cause(1, 10, 13), cause(1, 10, 12)];
        let origin = origin(&causes, 20);
        assert_eq!(origin.parent, Some(&causes[1]));
        assert_eq!(origin.links, [&causes[0], &causes[2]]);
        assert_eq!(origin.context.depth, 3);
        assert_eq!(origin.context.began_ns, 10 * SECOND);
    }

    #[test]
    fn of_several_traces_the_youngest_is_continued_and_the_others_are_linked() {
        let causes = [cause(1, 10, 19), cause(2, 15, 16)];
        let origin = origin(&causes, 20);
        assert_eq!(origin.parent, Some(&causes[1]));
        assert_eq!(origin.links, [&causes[0]]);
    }

    #[test]
    fn an_old_trace_is_left_with_a_link_back() {
        let causes = [cause(1, 10, 500)];
        assert_eq!(origin(&causes, 610).parent, Some(&causes[0]));
        let cut = origin(&causes, 611);
        assert_eq!((cut.parent, cut.links), (None, vec![&causes[0]]));
        assert_eq!(cut.context, TraceContext::default());
    }

    #[test]
    fn an_untraced_write_is_parent_only_without_a_traced_one() {
        let untraced = Cause {
            began_ns: 19 * SECOND,
            ..Cause::default()
        };
        let causes = [untraced, cause(1, 10, 11)];
        assert_eq!(origin(&causes, 20).parent, Some(&causes[1]));
        assert_eq!(origin(&[], 20), Origin::default());
    }
}
