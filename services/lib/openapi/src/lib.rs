//! The OpenAPI documents of the API: v3 with one for each group and version, and v2 with one for everything.
//!
//! ```text
//! messages ─▶ schema ─┐                ┌─▶ v3 documents
//!                     ├─▶ paths, schemas ┤
//! definitions ─▶ custom ┘                └─▶ v2 parts ─▶ JSON, protobuf (`gnostic`)
//!               other servers ─▶ swagger ─▶ merge ┘
//! ```
//! [`Documents`] has those of the kinds that are served at present. A document is built when it is first requested.

pub mod comments;
mod connect;
mod custom;
mod document;
mod gnostic;
mod gzip;
mod merge;
mod parameters;
mod part;
mod paths;
mod published;
mod release;
mod schema;
mod swagger;
mod v2;
mod v3;

pub use document::{Built, Document};
pub use published::{Documents, Published};
pub use swagger::Filtered;
