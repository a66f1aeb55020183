//! Types that are strings or numbers in JSON.

use setpoint_proto::meta::{IntOrString, Quantity};

#[test]
fn the_text_of_a_quantity_is_kept() {
    for (json, text) in [
        (r#""0.5""#, "0.5"),
        ("2", "2"),
        ("1.5", "1.5"),
        ("null", ""),
    ] {
        assert_eq!(serde_json::from_str::<Quantity>(json).unwrap().string, text);
    }
    assert_eq!(
        serde_json::to_string(&Quantity::default()).unwrap(),
        r#""0""#
    );
}

#[test]
fn an_int_or_string_round_trips_through_json() {
    for (json, value) in [
        ("80", IntOrString::int(80)),
        (r#""25%""#, IntOrString::string("25%")),
    ] {
        let read: IntOrString = serde_json::from_str(json).unwrap();
        assert_eq!(read, value);
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
    }
    assert!(serde_json::from_str::<IntOrString>("1.5").is_err());
}
