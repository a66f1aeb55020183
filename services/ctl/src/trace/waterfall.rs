//! A cascade drawn with characters: who, what, when, why.

use std::fmt::{self, Display, Formatter};

use super::cascade::{Cascade, Span};

/// So wide is the part that shows when.
const BAR: usize = 40;
/// So much of a span's name is shown, indented by its depth.
const NAME: usize = 46;
/// So many alike under one parent are shown unless all are wanted.
const ALIKE: usize = 3;

/// How to draw which cascade.
pub struct Waterfall<'c> {
    /// Which.
    pub cascade: &'c Cascade,
    /// Every span.
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
        self.level(f, &cascade.tops(), 0)
    }
}

impl Waterfall<'_> {
    fn level(&self, f: &mut Formatter<'_>, spans: &[&Span], depth: usize) -> fmt::Result {
        for (at, span) in spans.iter().enumerate() {
            let alike = |other: &&&Span| other.service == span.service && other.name == span.name;
            let before = spans[..at].iter().filter(alike).count();
            let after = spans[at + 1..].iter().filter(alike).count();
            if self.all || before < ALIKE {
                self.line(f, span, depth)?;
                self.level(f, &self.cascade.below(span), depth + 1)?;
            } else if before == ALIKE {
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
        let what = cut(&format!("{indent}{}{object}", span.name), NAME);
        let bar = self.bar(span);
        let took = time(span.took);
        let because = match (span.failed, span.because.as_str()) {
            (true, why) => format!("  failed {why}"),
            (false, "") => String::new(),
            (false, why) => format!("  {why}"),
        };
        let service = &span.service;
        let line = format!("{service:21}  {what:NAME$}  {bar:BAR$} {took:>9}{because}");
        writeln!(f, "{}", line.trim_end())
    }

    fn bar(&self, span: &Span) -> String {
        let (start, whole) = self.cascade.extent();
        let place = |time: u64| {
            let part = time as f64 / whole.max(1) as f64;
            (part * BAR as f64) as usize
        };
        let from = place(span.start - start).min(BAR - 1);
        let to = place(span.start - start + span.took).clamp(from + 1, BAR);
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

    fn drawn(spans: Vec<Value>, all: bool) -> String {
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
    fn a_span_stands_below_its_parent_at_its_time() {
        let text = drawn(
            vec![
                span("b", "a", "queue", 500, 500),
                span("a", "", "POST", 0, 1000),
            ],
            false,
        );
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "trace 4bf9: 2 spans of 1 services, 1.0 ms");
        assert!(
            lines[2].contains("  POST ") && lines[2].contains(&"█".repeat(BAR)),
            "{text}"
        );
        let wait = format!("{}{}", " ".repeat(BAR / 2), "·".repeat(BAR / 2));
        assert!(
            lines[3].contains("   queue ") && lines[3].contains(&wait),
            "{text}"
        );
        assert!(lines[3].ends_with("0.5 ms  too few"), "{text}");
    }

    #[test]
    fn of_many_alike_a_few_are_shown() {
        let many = || {
            (0..10)
                .map(|n| span(&n.to_string(), "", "POST", n, 1))
                .collect()
        };
        let text = drawn(many(), false);
        assert_eq!(text.lines().count(), 2 + ALIKE + 1);
        assert!(text.ends_with("… 7 more: POST\n"), "{text}");
        assert_eq!(drawn(many(), true).lines().count(), 2 + 10);
    }
}
