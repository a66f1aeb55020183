//! The name of an object among those of its kind.

use std::fmt;

use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::setpoint::ObjectRef;

/// A namespace and a name; the namespace is empty for kinds that have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for cluster-wide kinds.
    pub namespace: String,
    /// Unique within the namespace, among one kind.
    pub name: String,
}

impl Key {
    /// The key of `name` in `namespace`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key under which the object is stored.
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
    fn a_key_reads_as_kubectl_writes_it() {
        assert_eq!(Key::new("production", "web").to_string(), "production/web");
        assert_eq!(Key::new("", "node-1").to_string(), "node-1");
    }
}
