//! The part of SPDY/3.1 that Kubernetes' clients use: one connection with streams in both directions.
//!
//! ```text
//!            ┌ reader: frames ─▶ new streams (`Incoming`), and their data (`Stream::data`)
//! connection ┤
//!            └ writer: frames of all streams (`Writer`), in their order
//! ```
//! There are no windows, as in Kubernetes' own implementation: a stream that is not read stops the connection, for a
//! while. Headers are compressed with a dictionary that both ends know (`headers`).

mod connection;
mod dictionary;
mod frame;
mod headers;
#[cfg(test)]
mod tests;

pub use connection::{Gone, Incoming, Stream, Writer, accept};
