//! Tests of the cluster's DNS: answers, the index, the server over sockets, and the registration.

mod answers;
mod autopath;
mod cluster;
mod index;
mod registration;
mod server;
