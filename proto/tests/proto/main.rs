//! Messages in JSON and as text, errors, and trace contexts.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod duration;
mod error;
mod json_schema;
mod number;
mod object;
mod quantity;
mod time;
mod trace;
mod why;
