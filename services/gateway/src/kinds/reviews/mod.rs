//! The reviews.

mod authentication;
mod authorization;
