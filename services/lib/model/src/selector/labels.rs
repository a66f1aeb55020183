//! Label selectors.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use setpoint_proto::meta::{LabelSelector, LabelSelectorRequirement};

use super::{Error, check_length, check_requirements, parse};
use crate::labels::Lookup;
use crate::names;

/// A label selector. Selects objects that meet all requirements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

/// A requirement on a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Requirement {
    key: String,
    operator: Operator,
    values: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operator {
    Equals,
    /// Also met if the label is missing.
    NotEquals,
    In,
    /// As [`Self::NotEquals`].
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl Selector {
    /// Parses the syntax of kubectl: `app=web,tier in (a, b),!canary`.
    ///
    /// # Errors
    /// If the syntax is invalid, a key or value is not valid for a label, the text is longer than 64 KiB, or it has
    /// more than 256 requirements.
    pub fn parse(text: &str) -> Result<Self, Error> {
        check_length(text)?;
        let requirements = parse::requirements(text)?;
        check_requirements(requirements.len())?;
        Ok(Self { requirements })
    }

    /// Converts the selector of a spec. An empty one selects all objects.
    ///
    /// # Errors
    /// If an operator is unknown, its values are invalid, or there are more than 256 requirements.
    pub fn from_label_selector(selector: &LabelSelector) -> Result<Self, Error> {
        check_requirements(selector.match_labels.len() + selector.match_expressions.len())?;
        let mut selected = Self::from_labels(&selector.match_labels);
        for expression in &selector.match_expressions {
            let operator = match expression.operator.as_str() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    return Err(Error(format!(
                        "{other:?} is not a valid label selector operator"
                    )));
                }
            };
            let values = expression.values.iter().cloned().collect();
            selected
                .requirements
                .push(Requirement::new(&expression.key, operator, values)?);
        }
        selected.requirements.sort_by(Requirement::by_key);
        Ok(selected)
    }

    /// Converts it to the selector of a spec.
    ///
    /// # Errors
    /// If a requirement compares numbers, which a spec cannot.
    pub fn to_label_selector(&self) -> Result<LabelSelector, Error> {
        let mut selector = LabelSelector::default();
        for requirement in &self.requirements {
            let Requirement { key, values, .. } = requirement;
            let operator = match requirement.operator {
                // A second value of a label, which no object has, needs an expression.
                Operator::Equals if !selector.match_labels.contains_key(key) => {
                    let value = values.first().cloned().unwrap_or_default();
                    selector.match_labels.insert(key.clone(), value);
                    continue;
                }
                Operator::NotEquals | Operator::NotIn => "NotIn",
                Operator::Equals | Operator::In => "In",
                Operator::Exists => "Exists",
                Operator::DoesNotExist => "DoesNotExist",
                Operator::GreaterThan => return Err(not_in_a_spec("gt")),
                Operator::LessThan => return Err(not_in_a_spec("lt")),
            };
            selector.match_expressions.push(LabelSelectorRequirement {
                key: key.clone(),
                operator: operator.to_owned(),
                values: values.iter().cloned().collect(),
            });
        }
        Ok(selector)
    }

    /// Returns the selector of objects that have all of these labels.
    pub fn from_labels(labels: &BTreeMap<String, String>) -> Self {
        let equals = |(key, value): (&String, &String)| Requirement {
            key: key.clone(),
            operator: Operator::Equals,
            values: [value.clone()].into(),
        };
        Self {
            requirements: labels.iter().map(equals).collect(),
        }
    }

    /// Returns the selector of all objects.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Returns the selector of no object.
    pub fn nothing() -> Self {
        let never = Requirement {
            key: String::new(),
            operator: Operator::In,
            values: BTreeSet::new(),
        };
        Self {
            requirements: vec![never],
        }
    }

    /// Returns whether these labels meet all requirements.
    pub fn matches(&self, labels: &impl Lookup) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.holds(labels))
    }

    /// Returns whether it selects only objects in which a label has a value.
    pub fn requires(&self, key: &str, value: &str) -> bool {
        self.requirements.iter().any(|one| {
            let is_equal = matches!(one.operator, Operator::Equals | Operator::In);
            is_equal && one.key == key && one.values.iter().eq([value])
        })
    }

    /// Returns whether it selects all objects.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

fn not_in_a_spec(operator: &str) -> Error {
    Error(format!("{operator:?} isn't supported in label selectors"))
}

impl Requirement {
    pub(super) fn new(
        key: &str,
        operator: Operator,
        values: BTreeSet<String>,
    ) -> Result<Self, Error> {
        let invalid = |at: &str, text: &str, why: &str| {
            Err(Error(format!("{at}: Invalid value: {text:?}: {why}")))
        };
        if let Some(why) = names::validate_label_key(key).first() {
            return invalid("key", key, why);
        }
        for (index, value) in values.iter().enumerate() {
            if let Some(why) = names::validate_label_value(value).first() {
                return invalid(&format!("values[{index}][{key}]"), value, why);
            }
        }
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                return Err(Error("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty".into()));
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                return Err(Error(
                    "values: Invalid value: values set must be empty for exists and does not exist"
                        .into(),
                ));
            }
            Operator::GreaterThan | Operator::LessThan => {
                let non_integer = values.iter().find(|value| value.parse::<i64>().is_err());
                if let Some(value) = non_integer {
                    let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                    return invalid("values[0]", value, why);
                }
            }
            _ => {}
        }
        Ok(Self {
            key: key.to_owned(),
            operator,
            values,
        })
    }

    pub(super) fn by_key(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }

    fn holds(&self, labels: &impl Lookup) -> bool {
        let label = labels.value(&self.key);
        match self.operator {
            Operator::Equals | Operator::In => {
                label.is_some_and(|label| self.values.contains(label))
            }
            Operator::NotEquals | Operator::NotIn => {
                label.is_none_or(|label| !self.values.contains(label))
            }
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => self.compares(label, |label, bound| label > bound),
            Operator::LessThan => self.compares(label, |label, bound| label < bound),
        }
    }

    fn compares(&self, label: Option<&str>, holds: fn(i64, i64) -> bool) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        let bound = self.values.first().and_then(|text| number(text));
        label
            .and_then(number)
            .zip(bound)
            .is_some_and(|(label, bound)| holds(label, bound))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            operator,
            values,
        } = self;
        let values = || {
            values
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(",")
        };
        match operator {
            Operator::Equals => write!(f, "{key}={}", values()),
            Operator::NotEquals => write!(f, "{key}!={}", values()),
            Operator::In => write!(f, "{key} in ({})", values()),
            Operator::NotIn => write!(f, "{key} notin ({})", values()),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{}", values()),
            Operator::LessThan => write!(f, "{key}<{}", values()),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requirements: Vec<_> = self
            .requirements
            .iter()
            .map(Requirement::to_string)
            .collect();
        f.write_str(&requirements.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(text: &str) -> BTreeMap<String, String> {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn a_selector_without_comparisons_is_one_of_a_spec() {
        let selector = Selector::parse("a=b,c!=d,e in (f,g),h notin (i),j,!k").unwrap();
        let spec = selector.to_label_selector().unwrap();
        assert_eq!(spec.match_labels["a"], "b");
        let operators = spec.match_expressions.iter().map(|one| &*one.operator);
        assert!(operators.eq(["NotIn", "In", "NotIn", "Exists", "DoesNotExist"]));
        let again = Selector::from_label_selector(&spec).unwrap().to_string();
        assert_eq!(again, "a=b,c notin (d),e in (f,g),h notin (i),j,!k");
        let never = Selector::parse("a=b,a=c").unwrap();
        let spec = never.to_label_selector().unwrap();
        assert!(
            !Selector::from_label_selector(&spec)
                .unwrap()
                .matches(&spec.match_labels)
        );
        let error = Selector::parse("a>1").unwrap().to_label_selector();
        let expected = r#""gt" isn't supported in label selectors"#;
        assert_eq!(error.unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_label_is_required_by_one_value() {
        for (selector, expected) in [
            ("a=b", true),
            ("c,a in (b)", true),
            ("a=b,a!=c", true),
            ("", false),
            ("a", false),
            ("a!=b", false),
            ("a in (b,c)", false),
            ("a notin (b)", false),
            ("a=c", false),
            ("b=b", false),
        ] {
            let parsed = Selector::parse(selector).unwrap();
            assert_eq!(parsed.requires("a", "b"), expected, "{selector}");
        }
    }

    #[test]
    fn operators_select_as_in_kubectl() {
        for (selector, selected, not) in [
            ("app=web", "app=web", "app=db"),
            ("app == web", "app=web", "x=y"),
            ("app!=web", "x=y", "app=web"),
            ("app in (web, db)", "app=db", "app=x"),
            ("app notin (web,db)", "x=y", "app=db"),
            ("app", "app=", "x=y"),
            ("!app", "x=y", "app=web"),
            ("size > 3", "size=4", "size=3"),
            ("size<3", "size=2", "size=3"),
            ("size<4", "size=3", "size=x"),
            ("app=", "app=", "app=web"),
            ("in in (in)", "in=in", "in=x"),
            ("app=web,tier!=db , !canary", "app=web", "app=web,canary=1"),
        ] {
            let parsed = Selector::parse(selector).unwrap();
            assert!(
                parsed.matches(&labels(selected)),
                "{selector} on {selected}"
            );
            assert!(!parsed.matches(&labels(not)), "{selector} on {not}");
            assert_eq!(Selector::parse(&parsed.to_string()), Ok(parsed));
        }
    }

    #[test]
    fn everything_selects_any_labels_and_nothing_selects_none() {
        let none = labels("");
        assert!(Selector::everything().matches(&none) && Selector::everything().is_empty());
        assert!(!Selector::nothing().matches(&none) && !Selector::nothing().is_empty());
        assert_eq!(Selector::parse(" "), Ok(Selector::everything()));
    }

    #[test]
    fn from_label_selector_combines_labels_and_expressions() {
        let expression = |operator: &str, values: &[&str]| LabelSelector {
            match_labels: labels("app=web"),
            match_expressions: vec![LabelSelectorRequirement {
                key: "tier".into(),
                operator: operator.into(),
                values: values.iter().map(|&value| value.into()).collect(),
            }],
        };
        let selector = Selector::from_label_selector(&expression("NotIn", &["db"])).unwrap();
        assert_eq!(selector.to_string(), "app=web,tier notin (db)");
        let error = |selector| {
            Selector::from_label_selector(&selector)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error(expression("Is", &[])),
            "\"Is\" is not a valid label selector operator"
        );
        assert!(error(expression("In", &[])).contains("values set can't be empty"));
        assert!(error(expression("Exists", &["x"])).contains("must be empty"));
    }

    /// Checks F2.
    #[test]
    fn selectors_that_are_too_long_or_have_too_many_requirements_are_rejected() {
        let error = |text: &str| Selector::parse(text).unwrap_err().to_string();
        let values: Vec<_> = (0..40_000).map(|n| format!("v{n}")).collect();
        assert_eq!(
            error(&format!("non_integer in ({})", values.join(","))),
            "invalid selector: Too long: may not be more than 65536 bytes"
        );
        assert_eq!(
            error(&values[..257].join(",")),
            "invalid selector: Too many: 257: must have at most 256 requirements"
        );
        assert!(Selector::parse(&values[..256].join(",")).is_ok());
        assert!(
            Selector::parse(&format!("non_integer in ({})", values[..8_000].join(","))).is_ok()
        );
        let spec = |labels: usize, expressions: usize| {
            let labels = values[..labels].iter();
            let expression = |key: &String| LabelSelectorRequirement {
                key: key.clone(),
                operator: "Exists".into(),
                ..Default::default()
            };
            Selector::from_label_selector(&LabelSelector {
                match_labels: labels.map(|key| (key.clone(), String::new())).collect(),
                match_expressions: values[..expressions].iter().map(expression).collect(),
            })
        };
        assert!(spec(200, 56).is_ok());
        for (labels, expressions) in [(257, 0), (200, 57), (0, 257)] {
            assert!(
                spec(labels, expressions).is_err(),
                "{labels} and {expressions}"
            );
        }
    }

    proptest! {
        #[test]
        fn parsing_any_text_does_not_panic(text in "[a-z=!<>(), ö]{0,40}") {
            let _ = Selector::parse(&text);
        }
    }
}
