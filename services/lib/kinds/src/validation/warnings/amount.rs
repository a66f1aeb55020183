//! Warnings of amounts of bytes that are no whole numbers.

use setpoint_model::quantity::Amount;
use setpoint_proto::meta::Quantity;

use super::Warnings;
use crate::validation::field_path::FieldPath;

/// Warns of an amount of bytes with a fraction.
pub fn warn_of_fraction(
    quantity: Option<&Quantity>,
    path: &FieldPath<'_>,
    warnings: &mut Warnings,
) {
    let amount = quantity.map(|quantity| Amount::parse(&quantity.string));
    if let Some(Ok(amount)) = amount
        && amount < Amount::from_value(amount.value())
    {
        let value = amount.canonical();
        let text = format!("fractional byte value {value:?} is invalid, must be an integer");
        warnings.about(path, text);
    }
}
