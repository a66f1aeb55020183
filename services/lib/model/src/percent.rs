//! Numbers that may be given as percentages.

#![warn(clippy::arithmetic_side_effects)]

use setpoint_proto::meta::IntOrString;

/// The error of a text that is not a percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value for IntOrString: invalid type: string is not a percentage")]
pub struct Error;

/// Returns the number, or for text such as `25%` that percentage of `total`. Saturates.
///
/// # Errors
/// If the value is text and not a percentage.
pub fn resolve(value: &IntOrString, total: i32, round_up: bool) -> Result<i32, Error> {
    let Some(text) = value.as_str() else {
        return Ok(value.int_val);
    };
    let percent: i32 = text
        .strip_suffix('%')
        .and_then(|number| number.parse().ok())
        .ok_or(Error)?;
    let hundredths = i64::from(percent).saturating_mul(i64::from(total));
    let rounded = if round_up {
        hundredths.saturating_add(99)
    } else {
        hundredths
    };
    let share = rounded.div_euclid(100);
    let limit = if share.is_negative() {
        i32::MIN
    } else {
        i32::MAX
    };
    Ok(i32::try_from(share).unwrap_or(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded_up_or_down() {
        let quarter = IntOrString::string("25%");
        assert_eq!(resolve(&quarter, 10, true), Ok(3));
        assert_eq!(resolve(&quarter, 10, false), Ok(2));
        assert_eq!(resolve(&quarter, 8, true), Ok(2));
        assert_eq!(resolve(&quarter, 0, true), Ok(0));
    }

    #[test]
    fn percentages_saturate() {
        let resolve = |percent: &str, total, up| resolve(&IntOrString::string(percent), total, up);
        assert_eq!(resolve("2147483647%", i32::MAX, true), Ok(i32::MAX));
        assert_eq!(resolve("2147483647%", i32::MIN, false), Ok(i32::MIN));
        assert_eq!(resolve("-50%", 3, true), Ok(-1));
        assert_eq!(resolve("-50%", 3, false), Ok(-2));
        assert_eq!(resolve("100%", 7, true), Ok(7));
    }

    #[test]
    fn numbers_are_unchanged_and_other_text_is_rejected() {
        assert_eq!(resolve(&IntOrString::int(3), 10, true), Ok(3));
        assert_eq!(resolve(&IntOrString::string("3"), 10, true), Err(Error));
        assert_eq!(resolve(&IntOrString::string("x%"), 10, true), Err(Error));
    }
}
