//! Trace contexts, from headers and of writes.

use setpoint_proto::{TraceContext, Traceparent};

const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_traceparent_is_parsed_from_its_display() {
    let parent: Traceparent = VALID.parse().unwrap();
    assert_eq!(parent.to_string(), VALID);
    assert_eq!(parent.trace_id(), VALID[3..35]);
    assert_eq!(format!("{:016x}", parent.span), VALID[36..52]);
    assert!(parent.is_sampled() && parent.is_valid());
}

#[test]
fn additions_of_later_versions_are_ignored() {
    let later = format!("cc{}-what-comes-later", &VALID[2..]);
    let parent: Traceparent = later.parse().unwrap();
    assert_eq!(parent.to_string(), VALID);
}

#[test]
fn invalid_traceparents_are_rejected() {
    let zero_trace = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
    let too_long = format!("{VALID}-00");
    let signed = VALID.replace("00f067aa0ba902b7", "+0f067aa0ba902b7");
    let wide = VALID.replacen("4b", "ä", 1);
    for text in [
        "",
        "00",
        "ff-4bf9-00f0-01",
        &format!("ff{}", &VALID[2..]),
        &zero_trace,
        &too_long,
        &signed,
        &wide,
        &VALID[..54],
    ] {
        assert!(text.parse::<Traceparent>().is_err(), "{text}");
    }
}

#[test]
fn from_header_parses_the_parent_and_ignores_invalid_headers() {
    let context = TraceContext::from_header(Some(VALID));
    assert_eq!(context.parent, VALID.parse().ok());
    for header in [None, Some("no")] {
        assert_eq!(TraceContext::from_header(header), TraceContext::default());
    }
}

#[test]
fn validated_clears_invalid_fields() {
    for began_ns in [0, -1, i64::MAX] {
        let context = TraceContext {
            parent: Some(Traceparent::default()),
            began_ns,
            depth: 1,
        };
        assert_eq!(context.validated(), TraceContext::default(), "{began_ns}");
    }
    let valid = TraceContext {
        parent: VALID.parse().ok(),
        began_ns: 1,
        depth: 3,
    };
    assert_eq!(valid.validated(), valid);
}

#[test]
fn a_caused_write_has_the_same_trace_and_is_one_deeper() {
    let context = TraceContext::from_header(Some(VALID));
    let cause = context.cause("kubectl", 0);
    assert_eq!((cause.began_ns, cause.depth), (cause.written_ns, 0));
    let after = TraceContext::after(&cause);
    assert_eq!((after.began_ns, after.depth), (cause.began_ns, 1));
    assert_eq!(after.parent, context.parent);
    let other = VALID.replace("b7-01", "b8-01").parse().ok();
    assert_eq!(after.within(other).parent, other);
    assert_eq!(after.within(None), after);
    let next = after.cause("scheduler", 7);
    assert_eq!(
        (next.began_ns, next.depth, next.term),
        (cause.began_ns, 1, 7)
    );
}
