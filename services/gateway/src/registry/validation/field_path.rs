//! Where a field stands in its object; costs nothing until it is printed.

use std::fmt;

/// A field, an entry of a list, or a value of a map. Lives on the stack, its parents with it.
#[derive(Clone, Copy, Debug)]
pub struct FieldPath<'a> {
    parent: Option<&'a FieldPath<'a>>,
    part: Part<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Part<'a> {
    Field(&'static str),
    Name(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> FieldPath<'a> {
    /// A field of the object itself.
    pub const fn root(name: &'static str) -> Self {
        Self {
            parent: None,
            part: Part::Field(name),
        }
    }

    /// A field within.
    pub const fn field(&'a self, name: &'static str) -> Self {
        self.with(Part::Field(name))
    }

    /// A value of the map, written as upstream writes some of them: like a field.
    pub const fn name(&'a self, name: &'a str) -> Self {
        self.with(Part::Name(name))
    }

    /// An entry of the list.
    pub const fn index(&'a self, index: usize) -> Self {
        self.with(Part::Index(index))
    }

    /// A value of the map.
    pub const fn key(&'a self, key: &'a str) -> Self {
        self.with(Part::Key(key))
    }

    const fn with(&'a self, part: Part<'a>) -> Self {
        Self {
            parent: Some(self),
            part,
        }
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.part {
            Part::Field(name) if self.parent.is_some() => write!(f, ".{name}"),
            Part::Field(name) => f.write_str(name),
            Part::Name(name) => write!(f, ".{name}"),
            Part::Index(index) => write!(f, "[{index}]"),
            Part::Key(key) => write!(f, "[{key}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_kubernetes_writes_it() {
        let containers = FieldPath::root("spec").field("containers").to_string();
        assert_eq!(containers, "spec.containers");
        let spec = FieldPath::root("spec");
        let limits = spec.field("containers");
        let limits = limits.index(2);
        let limits = limits.field("limits");
        assert_eq!(
            limits.key("cpu").to_string(),
            "spec.containers[2].limits[cpu]"
        );
    }
}
