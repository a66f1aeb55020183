//! Formats leaderships: all as a table, or one change as a line.

use std::time::Duration;

use super::leadership::{Leadership, Standby};
use crate::table::render;

/// Formats a table with a row for each service.
pub fn table(leaderships: &[Leadership]) -> String {
    let header = [
        "SERVICE",
        "LEADER",
        "TERM",
        "LEASE AGE",
        "DURATION",
        "STANDBYS",
    ];
    let rows = leaderships.iter().map(|leadership| {
        let age = leadership.lease_age_seconds;
        [
            leadership.service.clone(),
            leader(leadership),
            leadership.term.to_string(),
            age.map_or_else(|| "-".to_owned(), |age| format!("{age:.1}s")),
            format!("{}s", leadership.lease_duration_seconds),
            standbys(leadership),
        ]
    });
    render(header, rows)
}

fn leader(leadership: &Leadership) -> String {
    match &leadership.leader {
        None => "none".to_owned(),
        Some(leader) if leadership.is_expired() => format!("{leader} (expired)"),
        Some(leader) => leader.clone(),
    }
}

fn standbys(leadership: &Leadership) -> String {
    let shown: Vec<_> = leadership.standbys.iter().map(Standby::describe).collect();
    match shown.is_empty() {
        true => "none".to_owned(),
        false => shown.join(", "),
    }
}

/// Formats the current leadership of a service, and its change from the `former` one. `gap` is the time between the
/// last sign of life of the former leader and the first of the new one.
pub fn line(leadership: &Leadership, former: Option<&Leadership>, gap: Option<Duration>) -> String {
    let Leadership { service, term, .. } = leadership;
    let rest = format!("term {term}, standbys: {}", standbys(leadership));
    let now = leader(leadership);
    match former {
        Some(former) if former.identity != leadership.identity => {
            let gap = gap.filter(|_| leadership.leader.is_some());
            let after = gap.map(|time| format!(", after {:.2}s", time.as_secs_f64()));
            let was = former.leader.as_deref().unwrap_or("none");
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

    fn leadership(leader: &str, age: f64) -> Leadership {
        Leadership {
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
    fn a_row_shows_the_leader_and_the_age_of_its_lease() {
        let text = table(&[
            leadership("scheduler-1", 0.31),
            leadership("scheduler-1", 2.5),
        ]);
        let lines: Vec<_> = text.lines().collect();
        let expected = "SERVICE     LEADER                  TERM   LEASE AGE   DURATION   STANDBYS";
        assert_eq!(lines[0], expected);
        let expected =
            "scheduler   scheduler-1             4      0.3s        2s         scheduler-0";
        assert_eq!(lines[1], expected);
        assert!(lines[2].contains("scheduler-1 (expired)"));
    }

    #[test]
    fn a_line_shows_both_leaders_and_the_gap_between_them() {
        let (old, new) = (
            leadership("scheduler-0", 3.0),
            leadership("scheduler-1", 0.0),
        );
        let gap = Some(Duration::from_millis(2310));
        assert_eq!(
            line(&new, Some(&old), gap),
            "scheduler: scheduler-0 → scheduler-1, after 2.31s; term 4, standbys: scheduler-0"
        );
        let first = line(&new, None, None);
        assert_eq!(
            first,
            "scheduler: scheduler-1; term 4, standbys: scheduler-0"
        );
    }
}
