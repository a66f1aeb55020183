//! Labels, packed for keeping.

use std::collections::BTreeMap;

/// Something in which a label can be looked up.
pub trait Lookup {
    /// The value of the label, if it is there.
    fn value(&self, key: &str) -> Option<&str>;
}

impl Lookup for BTreeMap<String, String> {
    fn value(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

/// An object's labels in as little memory as they need: a map's smallest node alone takes half a kilobyte,
/// which counts when a cache holds a hundred thousand Pods. They stand in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

impl Labels {
    /// The labels in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

impl Lookup for Labels {
    fn value(&self, key: &str) -> Option<&str> {
        let place = self.0.binary_search_by(|(name, _)| (**name).cmp(key));
        place.ok().map(|place| &*self.0[place].1)
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
    fn packed_labels_are_selected_like_plain_ones() {
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
