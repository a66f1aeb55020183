//! The key of an object among those of its kind.

use std::fmt;

use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::setpoint::ObjectRef;

/// Namespace and name of an object.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The name, unique within the namespace and kind.
    pub name: String,
}

impl Key {
    /// Returns the key of `name` in `namespace`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Returns the key of an object.
    pub fn of(meta: &ObjectMeta) -> Self {
        Self::new(&meta.namespace, &meta.name)
    }

    /// Returns a reference to the object of a kind; `resource` is the plural with its group, for example
    /// `deployments.apps`.
    pub fn in_resource(self, resource: impl Into<String>) -> ObjectRef {
        ObjectRef {
            resource: resource.into(),
            namespace: self.namespace,
            name: self.name,
        }
    }
}

/// As [`Display`](fmt::Display), since plans are printed for users.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_displayed_with_its_namespace_if_it_has_one() {
        assert_eq!(Key::new("production", "web").to_string(), "production/web");
        assert_eq!(format!("{:?}", Key::new("", "node-1")), "node-1");
    }
}
