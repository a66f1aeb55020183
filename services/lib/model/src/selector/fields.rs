//! Selection by fields, as in `spec.nodeName=node-1,status.phase!=Running`.

use std::fmt;

use super::Error;

/// Objects whose fields meet every requirement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    requirements: Vec<FieldRequirement>,
}

/// One demand on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// For example `metadata.name`.
    pub path: String,
    /// How to compare.
    pub comparison: Comparison,
    /// What to compare with; a field that is missing is the empty text.
    pub value: String,
}

/// How a field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=` or `==`.
    Equal,
    /// `!=`.
    NotEqual,
}

impl Fields {
    /// Reads a list of comparisons; `\` takes `,`, `=` and itself literally.
    ///
    /// # Errors
    /// When a part of the list is no comparison.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let parts = split(text).into_iter().filter(|part| !part.is_empty());
        let requirements = parts.map(|part| {
            FieldRequirement::parse(part).ok_or_else(|| {
                Error(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                ))
            })
        });
        Ok(Self {
            requirements: requirements.collect::<Result<_, _>>()?,
        })
    }

    /// What is demanded.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// The value that the field must have, if one is demanded: what an index may look up.
    pub fn exact(&self, path: &str) -> Option<&str> {
        let demands = |demand: &&FieldRequirement| {
            demand.comparison == Comparison::Equal && demand.path == path
        };
        self.requirements
            .iter()
            .find(demands)
            .map(|demand| demand.value.as_str())
    }

    /// Does an object with these fields meet every requirement?
    pub fn matches(&self, field: impl Fn(&str) -> Option<String>) -> bool {
        self.requirements.iter().all(|demand| {
            let same = field(&demand.path).unwrap_or_default() == demand.value;
            same == (demand.comparison == Comparison::Equal)
        })
    }

    /// Does it select everything?
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl FieldRequirement {
    /// The first operator counts: no path holds one.
    fn parse(text: &str) -> Option<Self> {
        let (left, right) = text.split_once('=')?;
        let (path, comparison) = match left.strip_suffix('!') {
            Some(path) => (path, Comparison::NotEqual),
            None => (left, Comparison::Equal),
        };
        let doubled = right
            .strip_prefix('=')
            .filter(|_| comparison == Comparison::Equal);
        Some(Self {
            path: path.to_owned(),
            comparison,
            value: literal(doubled.unwrap_or(right))?,
        })
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, demand) in self.requirements.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = if demand.comparison == Comparison::Equal {
                "="
            } else {
                "!="
            };
            let value = demand
                .value
                .replace('\\', "\\\\")
                .replace(',', "\\,")
                .replace('=', "\\=");
            write!(f, "{comma}{}{operator}{value}", demand.path)?;
        }
        Ok(())
    }
}

fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The text without its backslashes; `None` where one stands before nothing special, or `=` and `,` stand alone.
fn literal(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => letters.next().filter(|escaped| "\\,=".contains(*escaped))?,
            '=' | ',' => return None,
            other => other,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_compared_and_a_missing_one_is_empty() {
        let fields = Fields::parse("spec.nodeName==node-1,status.phase!=Running,").unwrap();
        let pod = |phase: &'static str| {
            move |path: &str| match path {
                "spec.nodeName" => Some("node-1".to_owned()),
                "status.phase" => Some(phase.to_owned()),
                _ => None,
            }
        };
        assert!(fields.matches(pod("Pending")));
        assert!(!fields.matches(pod("Running")));
        assert!(Fields::parse("spec.x=").unwrap().matches(pod("")));
        assert_eq!(fields.exact("spec.nodeName"), Some("node-1"));
        assert_eq!(fields.exact("status.phase"), None);
        assert_eq!(
            fields.to_string(),
            "spec.nodeName=node-1,status.phase!=Running"
        );
    }

    #[test]
    fn what_is_no_comparison_is_named() {
        let error = Fields::parse("a=b,metadata.name").unwrap_err().to_string();
        assert_eq!(
            error,
            "invalid selector: 'a=b,metadata.name'; can't understand 'metadata.name'"
        );
        assert!(Fields::parse("a=b=c").is_err());
        assert!(Fields::parse("").unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn any_value_survives_being_written_and_read(value in "[a-z\\\\,=ö!]{0,12}") {
            let requirement = FieldRequirement { path: "a".into(), comparison: Comparison::Equal, value };
            let fields = Fields { requirements: vec![requirement] };
            prop_assert_eq!(Fields::parse(&fields.to_string()), Ok(fields));
        }

        #[test]
        fn no_text_makes_the_parser_fall_over(text in "[a-z\\\\,=ö!]{0,40}") {
            let _ = Fields::parse(&text);
        }
    }
}
