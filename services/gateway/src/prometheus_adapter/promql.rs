//! Queries: templates, and matchers whose values are quoted, so that no request changes what a query means.

use setpoint_proto::meta::{LabelSelector, LabelSelectorRequirement};

const MATCHERS: &str = "matchers";
const BY: &str = "by";

/// A query with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Matchers,
    By,
}

impl Template {
    /// Parses a query with `<<matchers>>` and, if it is about objects, perhaps `<<by>>`.
    ///
    /// # Errors
    /// If a placeholder is unknown, or there are no matchers: such a query would be the same for every request.
    pub(super) fn parse(text: &str, of_objects: bool) -> Result<Self, String> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("<<") {
            let (name, after) = after.split_once(">>").ok_or("<< has no >>")?;
            parts.push(Part::Text(before.to_owned()));
            parts.push(match name {
                MATCHERS => Part::Matchers,
                BY if of_objects => Part::By,
                _ => return Err(format!("<<{name}>> is not a placeholder")),
            });
            rest = after;
        }
        if !parts.contains(&Part::Matchers) {
            return Err("the query must have <<matchers>>".to_owned());
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self(parts))
    }

    /// Returns the query of a request.
    pub(super) fn fill(&self, matchers: &Matchers, by: &str) -> String {
        let texts = self.0.iter().map(|part| match part {
            Part::Text(text) => text,
            Part::Matchers => matchers.0.as_str(),
            Part::By => by,
        });
        texts.collect()
    }
}

/// The matchers of a series, separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Matchers(String);

impl Matchers {
    fn push(&mut self, label: &str, operator: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(label);
        self.0.push_str(operator);
        self.0.push_str(&quoted(value));
    }

    /// Adds that a label has this value.
    pub(super) fn equal(&mut self, label: &str, value: &str) {
        self.push(label, "=", value);
    }

    /// Adds that a label has one of these values.
    pub(super) fn one_of(&mut self, label: &str, values: &[String]) {
        match values {
            [value] => self.equal(label, value),
            values => self.push(label, "=~", &alternatives(values)),
        }
    }

    /// Adds a selector of labels. As in Prometheus, a label that is missing has the empty value.
    ///
    /// # Errors
    /// If it names a label that no series can have.
    pub(super) fn select(&mut self, selector: &LabelSelector) -> Result<(), String> {
        for (label, value) in &selector.match_labels {
            self.equal(known(label)?, value);
        }
        for LabelSelectorRequirement {
            key,
            operator,
            values,
        } in &selector.match_expressions
        {
            let label = known(key)?;
            match operator.as_str() {
                "In" => self.one_of(label, values),
                "NotIn" => self.push(label, "!~", &alternatives(values)),
                "Exists" => self.push(label, "!=", ""),
                "DoesNotExist" => self.equal(label, ""),
                other => return Err(format!("{other:?} is not a valid label selector operator")),
            }
        }
        Ok(())
    }
}

fn known(label: &str) -> Result<&str, String> {
    match is_label(label) {
        true => Ok(label),
        false => Err(format!("{label:?} is not a name of a label in Prometheus")),
    }
}

/// Returns whether a label can have this name. UTF-8 names of Prometheus 3 are not supported.
pub(super) fn is_label(name: &str) -> bool {
    let mut letters = name.chars();
    let first = letters.next();
    first.is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Returns a regular expression of RE2 for one of these texts.
fn alternatives(texts: &[String]) -> String {
    let escape = |text: &String| {
        text.chars().fold(String::new(), |mut escaped, letter| {
            if r"\.+*?()|[]{}^$".contains(letter) {
                escaped.push('\\');
            }
            escaped.push(letter);
            escaped
        })
    };
    texts.iter().map(escape).collect::<Vec<_>>().join("|")
}

/// Returns a string literal of PromQL, with the escapes of Go.
fn quoted(text: &str) -> String {
    let mut literal = String::with_capacity(text.len().saturating_add(2));
    literal.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => literal.extend(['\\', letter]),
            control if control.is_control() => {
                literal.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => literal.push(other),
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use setpoint_model::Selector;

    use super::*;

    fn selecting(text: &str) -> Result<String, String> {
        let selector = Selector::parse(text).unwrap().to_label_selector().unwrap();
        let mut matchers = Matchers::default();
        matchers.select(&selector).map(|()| matchers.0)
    }

    #[test]
    fn a_query_has_the_matchers_and_the_label_of_a_request() {
        let text = "sum by (<<by>>) (rate(hits{code!=\"500\",<<matchers>>}[2m])) > 0";
        let template = Template::parse(text, true).unwrap();
        let mut matchers = Matchers::default();
        matchers.equal("namespace", "shop");
        matchers.one_of("pod", &["web.1".to_owned(), "web-2".to_owned()]);
        assert_eq!(
            template.fill(&matchers, "pod"),
            r#"sum by (pod) (rate(hits{code!="500",namespace="shop",pod=~"web\\.1|web-2"}[2m])) > 0"#
        );
    }

    #[test]
    fn a_template_without_matchers_or_with_other_placeholders_is_refused() {
        let refused = |text, of_objects| Template::parse(text, of_objects).unwrap_err();
        assert_eq!(refused("up", true), "the query must have <<matchers>>");
        assert_eq!(refused("up{<<matchers}", true), "<< has no >>");
        assert_eq!(
            refused("<<matchers>> <<x>>", true),
            "<<x>> is not a placeholder"
        );
        assert_eq!(
            refused("<<matchers>> <<by>>", false),
            "<<by>> is not a placeholder"
        );
    }

    #[test]
    fn a_selector_becomes_matchers() {
        for (text, matchers) in [
            ("", ""),
            ("a=b,c=d", r#"a="b",c="d""#),
            ("a!=b", r#"a!~"b""#),
            ("a in (b)", r#"a="b""#),
            ("a in (b,c.d)", r#"a=~"b|c\\.d""#),
            ("a notin (b,c)", r#"a!~"b|c""#),
            ("a,!b", r#"a!="",b="""#),
        ] {
            assert_eq!(selecting(text).as_deref(), Ok(matchers), "{text}");
        }
        let refused = selecting("example.com/a=b").unwrap_err();
        assert_eq!(
            refused,
            r#""example.com/a" is not a name of a label in Prometheus"#
        );
    }

    #[test]
    fn no_value_ends_its_string_or_its_regular_expression() {
        let evil = "a\"} or vector(1) #\\\n<<by>>".to_owned();
        let mut matchers = Matchers::default();
        matchers.equal("pod", &evil);
        let template = Template::parse("x{<<matchers>>}", true).unwrap();
        let expected = r#"x{pod="a\"} or vector(1) #\\\u000a<<by>>"}"#;
        assert_eq!(template.fill(&matchers, "pod"), expected);
        let mut matchers = Matchers::default();
        matchers.one_of("pod", &["a|.*".to_owned(), "b\"".to_owned()]);
        assert_eq!(matchers.0, r#"pod=~"a\\|\\.\\*|b\"""#);
    }
}
