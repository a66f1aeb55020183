//! The rules of a ServiceAccount: those of any object.

use setpoint_proto::core::ServiceAccount;

use crate::registry::strategy::Rules;

impl Rules for ServiceAccount {}
