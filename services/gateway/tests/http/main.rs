//! What stock clients hear over HTTP, asked of a gateway over the in-memory store.

mod api;
mod body;
mod discovery;
mod patch;
mod read;
mod watch;
mod write;
