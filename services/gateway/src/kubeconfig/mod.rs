//! Servers that kubeconfig files name, which settings name: the URL, whom the server is trusted by, and the credentials
//! for it.

mod file;
mod server;

pub(crate) use server::{Failure, Server};
