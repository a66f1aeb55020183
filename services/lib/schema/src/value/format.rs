//! The formats that apply to values of a schema.

use setpoint_cel::Node;
use setpoint_cel::strfmt;

use super::{INTEGER, NUMBER, STRING};

/// Returns the format if it is one of the schema's type, and else none: other formats are ignored.
pub(super) fn effective(node: &Node) -> &str {
    let schema_type = if node.int_or_string {
        ""
    } else {
        node.schema_type.as_str()
    };
    let format = node.format.as_str();
    let known = match schema_type {
        "" | STRING => strfmt::is_known(format),
        INTEGER => ["int32", "int64"].contains(&format),
        NUMBER => ["float", "double"].contains(&format),
        _ => false,
    };
    if known { format } else { "" }
}

/// Whether strings of the schema are checked against its format.
pub(super) fn is_known(node: &Node) -> bool {
    strfmt::is_known(effective(node))
}
