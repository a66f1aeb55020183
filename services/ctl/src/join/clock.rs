//! Compares the clock of this machine with that of a gateway. Certificates are valid by the clock: with another one, a
//! machine refuses those of the cluster, or makes some that the others refuse.

use anyhow::bail;
use axum::http::header::DATE;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use setpoint_host::http_client::Answer;

use super::gateway::Gateway;

/// The largest difference that is accepted, as by Kerberos. Certificates are valid an hour before they are made.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// Fails if the clock of this machine is not about that of the gateway that has answered. Its answer need not be
/// verified: at worst, nothing joins.
///
/// # Errors
/// The difference, and both times.
pub fn check(gateway: &Gateway, answer: &Answer) -> anyhow::Result<()> {
    let date = answer.headers.get(DATE);
    let date = date.and_then(|date| date.to_str().ok());
    let there = date.and_then(|date| DateTimeParser::new().parse_timestamp(date).ok());
    there.map_or(Ok(()), |there| compare(gateway, Timestamp::now(), there))
}

fn compare(gateway: &Gateway, here: Timestamp, there: Timestamp) -> anyhow::Result<()> {
    let ahead = here.duration_since(there);
    if ahead.abs() <= TOLERANCE {
        return Ok(());
    }
    let side = match ahead.is_positive() {
        true => "ahead of",
        false => "behind",
    };
    let [here, there] = [here, there].map(|time| time.strftime("%FT%TZ"));
    let off = SignedDuration::from_secs(ahead.abs().as_secs());
    bail!(
        "the clock of this machine is {off:#} {side} that of {gateway} ({here} here, {there} there): set it first, since \
         certificates are valid by the clock"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(ahead: SignedDuration) -> Result<(), String> {
        let gateway = Gateway::parse("10.0.0.1:6443").unwrap();
        let there: Timestamp = "2026-11-29T12:00:00Z".parse().unwrap();
        compare(&gateway, there + ahead, there).map_err(|error| error.to_string())
    }

    #[test]
    fn a_clock_that_is_off_is_named_with_both_times() {
        for minutes in [-5, 0, 5] {
            assert_eq!(compared(SignedDuration::from_mins(minutes)), Ok(()));
        }
        assert_eq!(
            compared(SignedDuration::from_hours(-1)).unwrap_err(),
            "the clock of this machine is 1h behind that of 10.0.0.1:6443 (2026-11-29T11:00:00Z here, \
             2026-11-29T12:00:00Z there): set it first, since certificates are valid by the clock"
        );
        let day = compared(SignedDuration::from_hours(24)).unwrap_err();
        assert!(
            day.starts_with("the clock of this machine is 24h ahead of that of"),
            "{day}"
        );
    }

    #[test]
    fn an_answer_without_a_date_tells_nothing_about_the_clock() {
        let gateway = Gateway::parse("10.0.0.1:6443").unwrap();
        let mut answer = Answer::default();
        assert!(check(&gateway, &answer).is_ok());
        let date = |text: &'static str| axum::http::HeaderValue::from_static(text);
        answer.headers.insert(DATE, date("now"));
        assert!(check(&gateway, &answer).is_ok());
        answer
            .headers
            .insert(DATE, date("Sun, 06 Nov 1994 08:49:37 GMT"));
        let why = check(&gateway, &answer).unwrap_err().to_string();
        assert!(why.contains("1994-11-06T08:49:37Z there"), "{why}");
    }
}
