//! Structural schemas of custom resources: pruning, defaults and validation of objects, in upstream's words.
//!
//! A [`Schema`] is compiled from the JSON of an `openAPIV3Schema`. An object that is written passes through it in this
//! order:
//!
//! 1. [`Schema::prune`] removes unknown fields;
//! 2. [`Schema::fill_defaults`] completes the object;
//! 3. [`Schema::validate`] finds its errors, as [`Violation`]s.
//!
//! [`validate_definition`] checks the schema itself when its definition is written.
//!
//! The size of schemas is bounded (depth, number of schemas, patterns, values of an `enum`), so that the work for one
//! object is, too.

mod defaults;
mod definition;
mod embedded;
mod list_type;
mod parse;
mod path;
mod prune;
mod ratchet;
mod rules;
mod schema;
mod value;
mod violation;

pub use definition::validate_definition;
pub use schema::Schema;
pub use setpoint_cel::go::print;
pub use setpoint_cel::{
    AdditionalProperties, Bounds, Enumeration, ListType, Node, Pattern, RESERVED_WORDS, Rule,
};
pub use violation::{Kind, Violation};
