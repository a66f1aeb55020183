//! The path of a field in an object.

use std::fmt;

/// The path of a field, as a list that lives on the stack: it becomes a string only in an error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    /// The beginning, which may be a path itself; empty for the root of an object.
    Root(&'a str),
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    pub(crate) const ROOT: Path<'static> = Path {
        parent: None,
        step: Step::Root(""),
    };

    /// Returns a path that begins with `prefix`.
    pub(crate) fn new(prefix: &'a str) -> Self {
        let step = Step::Root(prefix);
        Path { parent: None, step }
    }

    /// Returns the path of a field: `path.name`.
    pub(crate) fn field(&'a self, name: &'a str) -> Self {
        self.then(Step::Field(name))
    }

    /// Returns the path of a key of a map: `path[key]`.
    pub(crate) fn key(&'a self, key: &'a str) -> Self {
        self.then(Step::Key(key))
    }

    /// Returns the path of an item of a list: `path[0]`.
    pub(crate) fn index(&'a self, index: usize) -> Self {
        self.then(Step::Index(index))
    }

    pub(crate) fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    fn then(&'a self, step: Step<'a>) -> Self {
        let parent = Some(self);
        Path { parent, step }
    }

    fn write(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(out);
        }
        match self.step {
            Step::Root(prefix) => out.push_str(prefix),
            Step::Field(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Step::Key(key) => out.push_str(&format!("[{key}]")),
            Step::Index(index) => out.push_str(&format!("[{index}]")),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        formatter.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn fields_have_dots_and_keys_and_items_have_brackets() {
        let spec = Path::ROOT.field("spec");
        let labels = spec.field("labels");
        let item = spec.index(3);
        assert_eq!(labels.key("a/b").to_string(), "spec.labels[a/b]");
        assert_eq!(item.field("name").to_string(), "spec[3].name");
        let prefixed = Path::new("spec.versions[0]");
        assert_eq!(
            prefixed.field("schema").to_string(),
            "spec.versions[0].schema"
        );
    }
}
