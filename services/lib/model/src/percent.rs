//! Numbers that may be given as a share of a whole.

use setpoint_proto::meta::IntOrString;

/// The text is neither a number nor a percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value for IntOrString: invalid type: string is not a percentage")]
pub struct Error;

/// The number itself, or the share of `total` that a string such as `25%` asks for.
///
/// # Errors
/// When it is a string and no percentage.
pub fn resolve(value: &IntOrString, total: i32, round_up: bool) -> Result<i32, Error> {
    let Some(text) = value.as_str() else {
        return Ok(value.int_val);
    };
    let percent: i32 = text
        .strip_suffix('%')
        .and_then(|number| number.parse().ok())
        .ok_or(Error)?;
    let hundredths = i64::from(percent) * i64::from(total);
    let share = if round_up {
        -(-hundredths).div_euclid(100)
    } else {
        hundredths.div_euclid(100)
    };
    Ok(i32::try_from(share).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_as_asked() {
        let quarter = IntOrString::string("25%");
        assert_eq!(resolve(&quarter, 10, true), Ok(3));
        assert_eq!(resolve(&quarter, 10, false), Ok(2));
        assert_eq!(resolve(&quarter, 8, true), Ok(2));
        assert_eq!(resolve(&quarter, 0, true), Ok(0));
    }

    #[test]
    fn a_number_is_itself_and_other_text_is_refused() {
        assert_eq!(resolve(&IntOrString::int(3), 10, true), Ok(3));
        assert_eq!(resolve(&IntOrString::string("3"), 10, true), Err(Error));
        assert_eq!(resolve(&IntOrString::string("x%"), 10, true), Err(Error));
    }
}
