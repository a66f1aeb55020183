//! The path of a field in its object (upstream: `field.Path`); allocates nothing until it is formatted.

use std::fmt;

/// The path of a field, an entry of a list, or a value of a map. It borrows its parent, so it lives on the stack.
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
    /// Returns the path of a field of the object.
    pub const fn root(name: &'static str) -> Self {
        Self {
            parent: None,
            part: Part::Field(name),
        }
    }

    /// Returns the path of a field within.
    pub const fn field(&'a self, name: &'static str) -> Self {
        self.with(Part::Field(name))
    }

    /// Returns the path of a value of the map in the form of a field, as upstream has it for some maps.
    pub const fn name(&'a self, name: &'a str) -> Self {
        self.with(Part::Name(name))
    }

    /// Returns the path of an entry of the list.
    pub const fn index(&'a self, index: usize) -> Self {
        self.with(Part::Index(index))
    }

    /// Returns the path of a value of the map.
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
    fn a_path_is_formatted_as_in_kubernetes() {
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
