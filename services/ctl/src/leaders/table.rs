//! Standings as people read them: a table, or a line for what has changed.

use std::time::Duration;

use super::standing::{Standby, Standing};
use crate::columns::columns;

/// A table with a row for each service.
pub fn table(standings: &[Standing]) -> String {
    let header = [
        "SERVICE",
        "LEADER",
        "TERM",
        "LEASE AGE",
        "DURATION",
        "STANDBYS",
    ];
    let rows = standings.iter().map(|standing| {
        let age = standing.lease_age_seconds;
        [
            standing.service.clone(),
            leader(standing),
            standing.term.to_string(),
            age.map_or_else(|| "-".to_owned(), |age| format!("{age:.1}s")),
            format!("{}s", standing.lease_duration_seconds),
            standbys(standing),
        ]
    });
    columns(header, rows)
}

fn leader(standing: &Standing) -> String {
    match &standing.leader {
        None => "nobody".to_owned(),
        Some(leader) if standing.is_expired() => format!("{leader} (expired)"),
        Some(leader) => leader.clone(),
    }
}

fn standbys(standing: &Standing) -> String {
    let shown: Vec<_> = standing.standbys.iter().map(Standby::shown).collect();
    match shown.is_empty() {
        true => "none".to_owned(),
        false => shown.join(", "),
    }
}

/// One line that says how a service stands now; `silence` lies between the former leader's last sign of life and the
/// new one's first.
pub fn line(standing: &Standing, former: Option<&Standing>, silence: Option<Duration>) -> String {
    let Standing { service, term, .. } = standing;
    let rest = format!("term {term}, standbys: {}", standbys(standing));
    let now = leader(standing);
    match former {
        Some(former) if former.identity != standing.identity => {
            let silence = silence.filter(|_| standing.leader.is_some());
            let after = silence.map(|time| format!(", after {:.2}s", time.as_secs_f64()));
            let was = former.leader.as_deref().unwrap_or("nobody");
            format!(
                "{service}: {was} → {now}{}; {rest}",
                after.unwrap_or_default()
            )
        }
        _ => format!("{service}: {now}; {rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(leader: &str, age: f64) -> Standing {
        Standing {
            service: "scheduler".to_owned(),
            leader: Some(leader.to_owned()),
            identity: Some(format!("{leader}_1")),
            term: 4,
            lease_age_seconds: Some(age),
            lease_duration_seconds: 2,
            standbys: vec![Standby {
                instance: "scheduler-0".to_owned(),
                age_seconds: 1.0,
            }],
        }
    }

    #[test]
    fn a_row_says_who_leads_and_since_when_it_was_silent() {
        let text = table(&[standing("scheduler-1", 0.31), standing("scheduler-1", 2.5)]);
        let lines: Vec<_> = text.lines().collect();
        let expected = "SERVICE     LEADER                  TERM   LEASE AGE   DURATION   STANDBYS";
        assert_eq!(lines[0], expected);
        let expected =
            "scheduler   scheduler-1             4      0.3s        2s         scheduler-0";
        assert_eq!(lines[1], expected);
        assert!(lines[2].contains("scheduler-1 (expired)"));
    }

    #[test]
    fn a_line_says_who_took_over_from_whom_and_when() {
        let (old, new) = (standing("scheduler-0", 3.0), standing("scheduler-1", 0.0));
        let silence = Some(Duration::from_millis(2310));
        assert_eq!(
            line(&new, Some(&old), silence),
            "scheduler: scheduler-0 → scheduler-1, after 2.31s; term 4, standbys: scheduler-0"
        );
        let first = line(&new, None, None);
        assert_eq!(
            first,
            "scheduler: scheduler-1; term 4, standbys: scheduler-0"
        );
    }
}
