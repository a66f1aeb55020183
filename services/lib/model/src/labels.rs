//! Labels in a compact form.

use std::collections::BTreeMap;

/// A set of labels.
pub trait Lookup {
    /// Returns the value of a label.
    fn value(&self, key: &str) -> Option<&str>;
}

impl Lookup for BTreeMap<String, String> {
    fn value(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

/// The labels of an object, as a boxed slice sorted by key.
///
/// A `BTreeMap` takes at least half a kilobyte, which is too much for caches of a hundred thousand Pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

impl Labels {
    /// Returns the labels, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

impl Lookup for Labels {
    fn value(&self, key: &str) -> Option<&str> {
        let index = self.0.binary_search_by(|(name, _)| (**name).cmp(key));
        index.ok().map(|index| &*self.0[index].1)
    }
}

impl From<BTreeMap<String, String>> for Labels {
    fn from(labels: BTreeMap<String, String>) -> Self {
        let pack = |(key, value): (String, String)| (key.into(), value.into());
        Self(labels.into_iter().map(pack).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selector::Selector;

    #[test]
    fn selectors_match_labels_as_they_match_maps() {
        let plain: BTreeMap<_, _> = [
            ("app".to_owned(), "web".to_owned()),
            ("tier".to_owned(), String::new()),
        ]
        .into();
        let packed = Labels::from(plain.clone());
        for text in ["app=web", "tier", "tier=", "!app", "app!=web", "x"] {
            let selector = Selector::parse(text).unwrap();
            assert_eq!(
                selector.matches(&packed),
                selector.matches(&plain),
                "{text}"
            );
        }
        assert!(packed.iter().eq([("app", "web"), ("tier", "")]));
    }
}
