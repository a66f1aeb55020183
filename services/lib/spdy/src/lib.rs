//! The part of SPDY/3.1 that Kubernetes uses: one connection with streams in both directions. Servers [`accept`] it
//! from kubectl; clients [`connect`] to the streaming server of a container runtime.
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

pub use connection::{Gone, Incoming, MOST_OPENED, Stream, Writer, accept, connect};
