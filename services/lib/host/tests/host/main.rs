//! All tests of the crate from outside.

mod floods;
mod limits;
mod listener;
mod process;
mod spans;
mod tls;
