//! Quantities.

use setpoint_model::quantity::Amount;
use setpoint_proto::meta::Quantity;

use crate::stretch::stretch_text;

/// Parses one or two amounts, separated by a line break, and calculates with them.
pub fn run(input: &[u8]) {
    let text = stretch_text(input);
    let (first, second) = text.split_once('\n').unwrap_or((&text, "1"));
    let amounts = Amount::parse(first).and_then(|first| Ok((first, Amount::parse(second)?)));
    check_reading(first, Amount::parse(first).is_ok());
    let Ok((first, second)) = amounts else {
        return;
    };
    check_writing(first);
    check_writing(second);
    assert_eq!(first + second, second + first);
    assert_eq!(first - second < Amount::ZERO, first < second);
    if first <= second {
        assert!(first.millis() <= second.millis());
        assert!(first.value() <= second.value());
    }
}

/// Checks that bodies accept exactly the quantities that can be parsed as amounts.
fn check_reading(text: &str, is_amount: bool) {
    let json = serde_json::Value::from(text).to_string();
    let read = serde_json::from_str::<Quantity>(&json);
    if text == text.trim() {
        assert_eq!(read.is_ok(), is_amount, "{text:?}");
    }
}

fn check_writing(amount: Amount) {
    let written = amount.canonical();
    let again = Amount::parse(&written).expect("a canonical quantity can be parsed");
    assert_eq!(again, amount, "{written}");
    assert_eq!(again.canonical(), written);
}
