//! All tests of the crate from outside.

mod golden;
mod oracle;
