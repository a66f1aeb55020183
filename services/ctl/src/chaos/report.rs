//! Formats the effects of all rounds as a table.

use std::time::Duration;

use crate::table::render;

/// The effects of one round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The number of the round, from 1.
    pub round: u32,
    /// The replica with the fault.
    pub target: String,
    /// The new leader, if the target was leading.
    pub successor: Option<String>,
    /// From the last write of the old leader to the first write of the new one.
    pub leaderless: Option<Duration>,
    /// Writes of former leaders that the gateways refused.
    pub fenced: u64,
    /// Writes of former leaders committed after the new leader's first: must be 0.
    pub late: usize,
    /// Pods beyond the replicas of their ReplicaSet: must be 0.
    pub extra: usize,
    /// Acknowledged writes that the store has lost: must be 0.
    pub lost: usize,
}

impl Row {
    /// Whether all counts that must be 0 are 0.
    pub fn is_clean(&self) -> bool {
        (self.late, self.extra, self.lost) == (0, 0, 0)
    }

    /// Describes the round in one line.
    pub fn line(&self) -> String {
        let successor = self.successor.as_ref().map(|name| format!(" → {name}"));
        let leaderless = self
            .leaderless
            .map(|time| format!(", no leader for {}", format_time(time)));
        let Self {
            round,
            target,
            fenced,
            late,
            extra,
            lost,
            ..
        } = self;
        format!(
            "round {round}: {target}{}{}; {fenced} writes fenced, {late} late, {extra} extra Pods, {lost} writes lost",
            successor.unwrap_or_default(),
            leaderless.unwrap_or_default()
        )
    }
}

/// Formats all rounds, followed by median, maximum and totals.
pub fn table(rows: &[Row]) -> String {
    let header = [
        "ROUND",
        "TARGET",
        "SUCCESSOR",
        "LEADERLESS",
        "FENCED",
        "LATE",
        "EXTRA",
        "LOST",
    ];
    let none = || "-".to_owned();
    let of_round = rows.iter().map(|row| {
        [
            row.round.to_string(),
            row.target.clone(),
            row.successor.clone().unwrap_or_else(none),
            row.leaderless.map_or_else(none, format_time),
            row.fenced.to_string(),
            row.late.to_string(),
            row.extra.to_string(),
            row.lost.to_string(),
        ]
    });
    let times = times(rows);
    let summary = |name: &str, time: Option<Duration>| {
        let time = time.map_or_else(none, format_time);
        let empty = String::new;
        [
            name.to_owned(),
            empty(),
            empty(),
            time,
            empty(),
            empty(),
            empty(),
            empty(),
        ]
    };
    let mut total = summary("total", None);
    total[3] = String::new();
    total[4] = rows.iter().map(|row| row.fenced).sum::<u64>().to_string();
    total[5] = rows.iter().map(|row| row.late).sum::<usize>().to_string();
    total[6] = rows.iter().map(|row| row.extra).sum::<usize>().to_string();
    // Each round checks all writes acknowledged so far, so its count contains those of earlier rounds.
    total[7] = rows
        .iter()
        .map(|row| row.lost)
        .max()
        .unwrap_or_default()
        .to_string();
    let median = summary("median", median(&times));
    render(
        header,
        of_round.chain([median, summary("max", times.last().copied()), total]),
    )
}

fn times(rows: &[Row]) -> Vec<Duration> {
    let mut times: Vec<_> = rows.iter().filter_map(|row| row.leaderless).collect();
    times.sort();
    times
}

fn median(sorted: &[Duration]) -> Option<Duration> {
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get((sorted.len() - 1) / 2)?;
    Some((*lower + *upper) / 2)
}

fn format_time(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        _ => format!("{:.2} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(round: u32, millis: u64, fenced: u64) -> Row {
        Row {
            round,
            target: format!("scheduler-{}", round % 2),
            successor: Some(format!("scheduler-{}", (round + 1) % 2)),
            leaderless: Some(Duration::from_millis(millis)),
            fenced,
            ..Row::default()
        }
    }

    #[test]
    fn the_table_ends_with_median_max_and_totals() {
        let text = table(&[row(1, 2310, 0), row(2, 87, 4), row(3, 2400, 1)]);
        let expected = "\
ROUND    TARGET        SUCCESSOR     LEADERLESS   FENCED   LATE   EXTRA   LOST
1        scheduler-1   scheduler-0   2.31 s       0        0      0       0
2        scheduler-0   scheduler-1   87 ms        4        0      0       0
3        scheduler-1   scheduler-0   2.40 s       1        0      0       0
median                               2.31 s
max                                  2.40 s
total                                             5        0      0       0
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_two() {
        let times = [1, 3, 5, 90].map(Duration::from_secs);
        assert_eq!(median(&times), Some(Duration::from_secs(4)));
        assert_eq!(median(&times[..3]), Some(Duration::from_secs(3)));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_late_write_an_extra_pod_or_a_lost_write_makes_a_round_unclean() {
        assert!(row(1, 1, 9).is_clean());
        let spoilt = [
            Row {
                late: 1,
                ..Row::default()
            },
            Row {
                extra: 1,
                ..Row::default()
            },
            Row {
                lost: 1,
                ..Row::default()
            },
        ];
        assert!(spoilt.iter().all(|row| !row.is_clean()));
    }

    #[test]
    fn a_round_without_a_change_of_leader_has_no_leaderless_time() {
        let row = Row {
            round: 1,
            target: "gateway-1".to_owned(),
            ..Row::default()
        };
        let expected = "round 1: gateway-1; 0 writes fenced, 0 late, 0 extra Pods, 0 writes lost";
        assert_eq!(row.line(), expected);
        assert!(table(&[row]).contains("gateway-1   -           -            0"));
    }
}
