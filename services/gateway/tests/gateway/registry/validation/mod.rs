//! Tests of errors that depend on other objects, or on the stored one. The expected reasons and fields are those of
//! Kubernetes 1.36; what an object itself violates is tested in `lib/kinds`.

#[path = "../../../../../lib/kinds/tests/kinds/cases.rs"]
mod cases;
mod pods;
mod revisions;
mod services;
mod subresources;
mod table;
