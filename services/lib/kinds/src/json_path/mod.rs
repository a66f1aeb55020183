//! JSON paths in the dialect of kubectl, which the columns of custom resources use.
//!
//! ```text
//! path      = *step
//! step      = "." name | ".*" | ".." | "[" list "]" | "[?(" filter ")]" | literal
//! list      = "*" | index | slice | "'" name "'" | list "," list
//! filter    = path | path operator path            ; "@" and "$" stand for the value itself
//! ```
//! It is older than RFC 9535 and differs from it: `\` escapes a dot in a name, names may have any other character, and
//! an index out of range or a comparison of different types fails the whole path. Therefore none of the crates for JSON
//! paths serves.

mod evaluate;
mod parse;

use serde_json::Value;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath(Vec<Step>);

/// A path that cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A step from values to others.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// A field of an object.
    Field(String),
    /// All fields of objects, and all entries of lists.
    Wildcard,
    /// All objects and lists within a value, and the value itself.
    Descent,
    Slice(Slice),
    /// The results of all paths.
    Union(Vec<Vec<Step>>),
    /// The entries of a list for which a condition holds.
    Filter(Condition),
    /// The same value whatever the input is.
    Text(Value),
    /// The same value for each input.
    Literal(Value),
}

/// A range of indexes. Negative ones count from the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    step: Option<i64>,
    /// Whether the end is that of a single index.
    is_index: bool,
}

/// The condition of a filter. Without a comparison it holds if the path has a result.
#[derive(Clone, Debug, PartialEq)]
struct Condition {
    path: Vec<Step>,
    comparison: Option<(Operator, Vec<Step>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Parses a path such as `.status.conditions[?(@.type=="Ready")].status`.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        parse::path(text).map(Self)
    }

    /// Returns the first result; `None` if there is none, or the path does not apply to the value.
    pub fn first<'v>(&'v self, value: &'v Value) -> Option<&'v Value> {
        let results = evaluate::evaluate(&self.0, value).ok()?;
        results.first().copied()
    }
}
