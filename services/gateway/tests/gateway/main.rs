//! All tests of the gateway from outside: one binary, since each links all of it.

mod grpc;
mod http;
mod registry;
mod tls;
