//! The query parameter `timeout`.

use std::time::Duration;

use setpoint_proto::{ApiError, Reason};

use super::query::Query;

/// Returns the timeout of a request; `None` if it is not set, or 0.
///
/// # Errors
/// `BadRequest` if it is not a duration in the syntax of Go.
pub(super) fn timeout(query: &Query) -> Result<Option<Duration>, ApiError> {
    let Some(text) = query.get("timeout") else {
        return Ok(None);
    };
    let seconds = parse(text).map_err(|problem| {
        let message = format!("invalid timeout specified in the request URL - time: {problem}");
        ApiError::new(Reason::BadRequest, message)
    })?;
    // A negative or too large duration is no limit.
    let timeout = Duration::try_from_secs_f64(seconds).ok();
    Ok(timeout.filter(|timeout| !timeout.is_zero()))
}

/// Parses a sum of numbers with units, such as `1m30s` or `-1.5h`. Returns seconds.
fn parse(text: &str) -> Result<f64, String> {
    let invalid = || format!("invalid duration {text:?}");
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0.0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digit = |c: char| c.is_ascii_digit() || c == '.';
        let (number, after) = split(rest, digit);
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let (unit, after) = split(after, |c| !digit(c));
        let factor = match unit {
            "" => return Err(format!("missing unit in duration {text:?}")),
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            unit => return Err(format!("unknown unit {unit:?} in duration {text:?}")),
        };
        seconds += number * factor;
        rest = after;
    }
    Ok(if negative { -seconds } else { seconds })
}

/// Splits at the first character that does not satisfy `belongs`.
fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Option<Duration>, String> {
        timeout(&Query::parse(text)).map_err(|error| error.message)
    }

    #[test]
    fn durations_are_parsed_as_by_go() {
        let timeout = |milliseconds| Ok(Some(Duration::from_millis(milliseconds)));
        assert_eq!(parsed("timeout=10s"), timeout(10_000));
        assert_eq!(parsed("timeout=1m1.5s"), timeout(61_500));
        assert_eq!(parsed("timeout=%2B.25s"), timeout(250));
        for none in ["", "timeout=", "timeout=0", "timeout=0s", "timeout=-5s"] {
            assert_eq!(parsed(none), Ok(None), "{none}");
        }
        assert!(parsed("timeout=99999999999999999999h").is_ok());
    }

    /// Checks K19.
    #[test]
    fn malformed_durations_are_refused() {
        let problem = |text| parsed(text).unwrap_err();
        let begin = "invalid timeout specified in the request URL - time: ";
        for (text, end) in [
            ("timeout=invalid", r#"invalid duration "invalid""#),
            ("timeout=5", r#"missing unit in duration "5""#),
            ("timeout=5x", r#"unknown unit "x" in duration "5x""#),
            ("timeout=1.2.3s", r#"invalid duration "1.2.3s""#),
            ("timeout=-", r#"invalid duration "-""#),
        ] {
            assert_eq!(problem(text), format!("{begin}{end}"));
        }
    }
}
