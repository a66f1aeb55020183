//! The reviews.

mod authentication;
mod authorization;
mod binding;
