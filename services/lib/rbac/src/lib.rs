//! Role-based access control, without I/O.

pub mod bootstrap;
