//! All tests of the gateway from outside: one binary, since each links all of it.

mod configuration_files;
mod fairness;
mod grpc;
mod http;
mod permissions;
mod registry;
mod tls;
