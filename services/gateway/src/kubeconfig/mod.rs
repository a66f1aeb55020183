//! Servers of kubeconfig files that settings name: the URL, the CAs of the server, and the credentials for it.

mod file;
mod server;

pub(crate) use server::{Failure, Server};
