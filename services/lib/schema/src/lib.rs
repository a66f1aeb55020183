//! Structural schemas of custom resources: pruning, defaults and validation of objects, in upstream's words.
//!
//! A [`Schema`] is compiled from the JSON of an `openAPIV3Schema`. An object that is written passes through it in this order:
//!
//! 1. [`Schema::prune`] removes unknown fields;
//! 2. [`Schema::fill_defaults`] completes the object;
//! 3. [`Schema::validate`] finds its errors, as [`Violation`]s.
//!
//! [`validate_definition`] checks the schema itself when its definition is written.
//!
//! The size of schemas is bounded (depth, number of schemas, patterns, values of an `enum`), so that the work for one object is, too.

mod defaults;
mod definition;
mod embedded;
mod go;
mod list_type;
mod node;
mod parse;
mod path;
mod pattern;
mod prune;
mod ratchet;
mod rules;
mod schema;
mod strfmt;
mod value;
mod violation;

/// Expressions of their own, such as those of admission policies.
pub mod expression {
    pub use crate::rules::{
        Authorizer, Decision, Environment, Error, Evaluation, Expression, Global, Input, Output,
        Question, Value, Variables, on_compiler_stack,
    };
}

pub use definition::validate_definition;
pub use go::print;
pub use node::{AdditionalProperties, Bounds, Enumeration, ListType, Node, Rule};
pub use pattern::Pattern;
pub use rules::RESERVED_WORDS;
pub use schema::Schema;
pub use violation::{Kind, Violation};
