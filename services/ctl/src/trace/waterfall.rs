//! Draws a cascade as text: a line per span with service, operation, time and reason.

use std::fmt::{self, Display, Formatter};

use super::cascade::{Cascade, Span};

/// Width of the time axis in characters.
const BAR_WIDTH: usize = 40;
/// Width of the column of indented span names.
const NAME_WIDTH: usize = 46;
/// Number of similar spans shown under one parent, unless all are requested.
const MAX_SIMILAR: usize = 3;

/// A cascade to draw.
pub struct Waterfall<'c> {
    /// The cascade.
    pub cascade: &'c Cascade,
    /// Whether to draw all spans.
    pub all: bool,
}

impl Display for Waterfall<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let cascade = self.cascade;
        let (_, took) = cascade.extent();
        let (spans, services) = (cascade.len(), cascade.services().len());
        let id = &cascade.id;
        writeln!(
            f,
            "trace {id}: {spans} spans of {services} services, {}",
            time(took)
        )?;
        writeln!(f)?;
        self.level(f, &cascade.roots(), 0)
    }
}

impl Waterfall<'_> {
    fn level(&self, f: &mut Formatter<'_>, spans: &[&Span], depth: usize) -> fmt::Result {
        for (at, span) in spans.iter().enumerate() {
            let similar = |other: &&&Span| other.service == span.service && other.name == span.name;
            let before = spans[..at].iter().filter(similar).count();
            let after = spans[at + 1..].iter().filter(similar).count();
            if self.all || before < MAX_SIMILAR {
                self.line(f, span, depth)?;
                self.level(f, &self.cascade.children(span), depth + 1)?;
            } else if before == MAX_SIMILAR {
                let indent = " ".repeat(depth);
                let text = format!("{indent}… {} more: {}", after + 1, span.name);
                writeln!(f, "{:21}  {text}", span.service)?;
            }
        }
        Ok(())
    }

    fn line(&self, f: &mut Formatter<'_>, span: &Span, depth: usize) -> fmt::Result {
        let indent = " ".repeat(depth);
        let object = match span.object.as_str() {
            "" => String::new(),
            object => format!(" {object}"),
        };
        let what = cut(&format!("{indent}{}{object}", span.name), NAME_WIDTH);
        let bar = self.bar(span);
        let took = time(span.took);
        let because = match (span.failed, span.because.as_str()) {
            (true, why) => format!("  failed {why}"),
            (false, "") => String::new(),
            (false, why) => format!("  {why}"),
        };
        let service = &span.service;
        let line = format!("{service:21}  {what:NAME_WIDTH$}  {bar:BAR_WIDTH$} {took:>9}{because}");
        writeln!(f, "{}", line.trim_end())
    }

    fn bar(&self, span: &Span) -> String {
        let (start, whole) = self.cascade.extent();
        let place = |time: u64| {
            let part = time as f64 / whole.max(1) as f64;
            (part * BAR_WIDTH as f64) as usize
        };
        let from = place(span.start - start).min(BAR_WIDTH - 1);
        let to = place(span.start - start + span.took).clamp(from + 1, BAR_WIDTH);
        let ink = if span.is_wait() { "·" } else { "█" };
        format!("{}{}", " ".repeat(from), ink.repeat(to - from))
    }
}

fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

fn time(microseconds: u64) -> String {
    match microseconds {
        0..1_000_000 => format!("{:.1} ms", microseconds as f64 / 1e3),
        _ => format!("{:.2} s", microseconds as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn span(id: &str, parent: &str, name: &str, start: u64, took: u64) -> Value {
        json!({
            "spanID": id, "operationName": name, "startTime": start, "duration": took, "processID": "p",
            "tags": [{"key": "because", "value": "too few"}],
            "references": [{"refType": "CHILD_OF", "spanID": parent}],
        })
    }

    fn render(spans: Vec<Value>, all: bool) -> String {
        let processes = json!({"p": {"serviceName": "gateway"}});
        let trace = json!({"traceID": "4bf9", "spans": spans, "processes": processes});
        let cascade = Cascade::read(&trace).unwrap();
        let waterfall = Waterfall {
            cascade: &cascade,
            all,
        };
        waterfall.to_string()
    }

    #[test]
    fn a_span_is_drawn_below_its_parent_at_its_time() {
        let text = render(
            vec![
                span("b", "a", "queue", 500, 500),
                span("a", "", "POST", 0, 1000),
            ],
            false,
        );
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "trace 4bf9: 2 spans of 1 services, 1.0 ms");
        assert!(
            lines[2].contains("  POST ") && lines[2].contains(&"█".repeat(BAR_WIDTH)),
            "{text}"
        );
        let wait = format!("{}{}", " ".repeat(BAR_WIDTH / 2), "·".repeat(BAR_WIDTH / 2));
        assert!(
            lines[3].contains("   queue ") && lines[3].contains(&wait),
            "{text}"
        );
        assert!(lines[3].ends_with("0.5 ms  too few"), "{text}");
    }

    #[test]
    fn similar_spans_are_abbreviated_unless_all_are_requested() {
        let spans = || {
            (0..10)
                .map(|n| span(&n.to_string(), "", "POST", n, 1))
                .collect()
        };
        let text = render(spans(), false);
        assert_eq!(text.lines().count(), 2 + MAX_SIMILAR + 1);
        assert!(text.ends_with("… 7 more: POST\n"), "{text}");
        assert_eq!(render(spans(), true).lines().count(), 2 + 10);
    }
}
