//! The grammar of quantities.

use setpoint_proto::quantity::parse;

#[test]
fn what_can_be_no_quantity_is_refused() {
    for text in [
        "0", ".", "1.5", ".5", "5.", "-1", "+2", "100m", "128Mi", "1e3", "1E-3", "2E", "3k", "4u",
    ] {
        assert!(parse(text).is_ok(), "{text}");
    }
    for text in [
        "", "a", "1..2", "1.2.3", "1K", "1mi", "1MiB", "1 Gi", "1e", "1e1.5", "--1",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}
