//! All tests of `setpoint` as a program.

mod cluster;
mod faults;
