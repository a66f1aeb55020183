//! Field selectors, such as `spec.nodeName=node-1,status.phase!=Running`.

use std::fmt;

use super::{Error, check_length, check_requirements};

/// A field selector. Selects objects that meet all requirements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    requirements: Vec<FieldRequirement>,
}

/// A requirement on a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The path of the field, for example `metadata.name`.
    pub path: String,
    /// The operator.
    pub comparison: Comparison,
    /// The value to compare with. A missing field has the empty value.
    pub value: String,
}

/// The operators on fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=` or `==`.
    Equal,
    /// `!=`.
    NotEqual,
}

impl Fields {
    /// Parses a list of comparisons. `\` escapes `,`, `=` and itself.
    ///
    /// # Errors
    /// If a part of the list is not a comparison, the text is longer than 64 KiB, or it has more than 256 comparisons.
    pub fn parse(text: &str) -> Result<Self, Error> {
        check_length(text)?;
        let mut parts = split(text);
        parts.retain(|part| !part.is_empty());
        check_requirements(parts.len())?;
        parts.sort_unstable();
        let requirements = parts.into_iter().map(|part| {
            FieldRequirement::parse(part)?.ok_or_else(|| {
                Error(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                ))
            })
        });
        let mut requirements = requirements.collect::<Result<Vec<_>, _>>()?;
        requirements.sort_by_cached_key(FieldRequirement::to_string);
        Ok(Self { requirements })
    }

    /// Returns the requirements.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// Returns the value that a field must be equal to, if there is such a requirement, for lookups in an index.
    pub fn exact(&self, path: &str) -> Option<&str> {
        let is_exact = |requirement: &&FieldRequirement| {
            requirement.comparison == Comparison::Equal && requirement.path == path
        };
        self.requirements
            .iter()
            .find(is_exact)
            .map(|requirement| requirement.value.as_str())
    }

    /// Returns whether an object with these fields meets all requirements.
    pub fn matches(&self, field: impl Fn(&str) -> Option<String>) -> bool {
        self.requirements.iter().all(|requirement| {
            let same = field(&requirement.path).unwrap_or_default() == requirement.value;
            same == (requirement.comparison == Comparison::Equal)
        })
    }

    /// Returns whether it selects all objects.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl FieldRequirement {
    /// Parses a comparison; `None` if there is no operator. The first operator applies, since paths have none.
    fn parse(text: &str) -> Result<Option<Self>, Error> {
        let Some((left, right)) = text.split_once('=') else {
            return Ok(None);
        };
        let (path, comparison) = match left.strip_suffix('!') {
            Some(path) => (path, Comparison::NotEqual),
            None => (left, Comparison::Equal),
        };
        let doubled = right
            .strip_prefix('=')
            .filter(|_| comparison == Comparison::Equal);
        Ok(Some(Self {
            path: path.to_owned(),
            comparison,
            value: literal(doubled.unwrap_or(right))?,
        }))
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match self.comparison {
            Comparison::Equal => "=",
            Comparison::NotEqual => "!=",
        };
        let value = self
            .value
            .replace('\\', "\\\\")
            .replace(',', "\\,")
            .replace('=', "\\=");
        write!(f, "{}{operator}{value}", self.path)
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

/// Removes the escapes of a value. Unescaped `,` and `=` and escapes of other characters are errors.
fn literal(text: &str) -> Result<String, Error> {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => escaped(letters.next())?,
            // The message of upstream has the code point.
            '=' | ',' => {
                let why = "unescaped character in value";
                return Err(invalid(format_args!("{why}: {}", u32::from(letter))));
            }
            other => other,
        });
    }
    Ok(plain)
}

fn escaped(letter: Option<char>) -> Result<char, Error> {
    let wrong = || {
        let letter = letter.map(String::from).unwrap_or_default();
        invalid(format_args!("invalid escape sequence: \\{letter}"))
    };
    letter
        .filter(|letter| "\\,=".contains(*letter))
        .ok_or_else(wrong)
}

fn invalid(why: fmt::Arguments<'_>) -> Error {
    Error(format!("invalid field selector: {why}"))
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
        let paths = fields
            .requirements()
            .iter()
            .map(|requirement| &*requirement.path);
        assert!(paths.eq(["spec.nodeName", "status.phase"]));
        assert!(!fields.is_empty() && Fields::default().is_empty());
        assert_eq!(fields.exact("spec.nodeName"), Some("node-1"));
        assert_eq!(fields.exact("status.phase"), None);
        assert_eq!(
            fields.to_string(),
            "spec.nodeName=node-1,status.phase!=Running"
        );
    }

    #[test]
    fn errors_have_the_messages_of_upstream() {
        for (text, complaint) in [
            (
                "a=b,metadata.name",
                "invalid selector: 'a=b,metadata.name'; can't understand 'metadata.name'",
            ),
            (
                "a=b=c",
                "invalid field selector: unescaped character in value: 61",
            ),
            (
                r"k=\a",
                r"invalid field selector: invalid escape sequence: \a",
            ),
            (
                r"k=\",
                r"invalid field selector: invalid escape sequence: \",
            ),
        ] {
            let error = Fields::parse(text).unwrap_err().to_string();
            assert_eq!(error, complaint);
        }
    }

    /// Cases of upstream's own tests (`TestSplitTerms`, `TestSplitTerm`, `TestEscapeValue`, `TestSelectorParse`).
    #[test]
    fn selectors_are_parsed_as_by_upstream() {
        for (text, written) in [
            ("", ""),
            ("x=a,y=b,z=c", "x=a,y=b,z=c"),
            ("x!=a,y=b", "x!=a,y=b"),
            (r"x=a||y\=b", r"x=a||y\=b"),
            (r"x=a\=\=b", r"x=a\=\=b"),
            (
                "a=avalue,b==bvalue,c!=cvalue",
                "a=avalue,b=bvalue,c!=cvalue",
            ),
            ("x=a,a=x", "a=x,x=a"),
            (",a=a,", "a=a"),
            (r"k=\,,k2=v2", r"k2=v2,k=\,"),
            (r"k=\\,k2=v2", r"k2=v2,k=\\"),
            ("함=수,목=록", "목=록,함=수"),
            (r"complex=\=value\\\,\\", r"complex=\=value\\\,\\"),
        ] {
            let fields = Fields::parse(text).map(|fields| fields.to_string());
            assert_eq!(fields.as_deref(), Ok(written), "{text}");
        }
        for text in ["x=a||y=b", "x==a==b", "x=a,b", "x in (a)", "x", r"k=\\\"] {
            assert!(Fields::parse(text).is_err(), "{text}");
        }
    }

    /// Checks F2.
    #[test]
    fn selectors_that_are_too_long_or_have_too_many_requirements_are_rejected() {
        let parts = |count: usize| vec!["a=b"; count].join(",");
        assert!(Fields::parse(&parts(256)).is_ok());
        for (text, complaint) in [
            (parts(257), "must have at most 256 requirements"),
            (parts(1_000_000), "may not be more than 65536 bytes"),
        ] {
            let error = Fields::parse(&text).unwrap_err().to_string();
            assert!(error.ends_with(complaint), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_value_is_parsed_from_its_display(value in "[a-z\\\\,=ö!]{0,12}") {
            let requirement = FieldRequirement { path: "a".into(), comparison: Comparison::Equal, value };
            let fields = Fields { requirements: vec![requirement] };
            prop_assert_eq!(Fields::parse(&fields.to_string()), Ok(fields));
        }

        #[test]
        fn parsing_any_text_does_not_panic(text in "[a-z\\\\,=ö!]{0,40}") {
            let _ = Fields::parse(&text);
        }
    }
}
