//! The seats of levels: their shares of those of the server, and what they lend and borrow.

use crate::allocation::{Share, allocate};
use crate::demand::Demand;

/// The part of its nominal seats that one request of a level may take.
const OF_NOMINAL: f64 = 0.15;

/// The configured limits of a level, in seats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Its share of the seats of the server.
    pub nominal: usize,
    /// The seats that remain if it lends all that it may.
    pub minimum: usize,
    /// The seats if it borrows all that it may.
    pub maximum: usize,
}

impl Limits {
    /// Returns the limits of a level with `shares` of `sum`. Rounded up, so that the sum of all may exceed the seats of
    /// the server by less than the number of levels, as upstream.
    pub fn of(
        total: usize,
        shares: i32,
        sum: i64,
        lendable_percent: Option<i32>,
        borrowing_percent: Option<i32>,
    ) -> Self {
        let part = f64::from(shares.max(0)) / (sum.max(1) as f64);
        let nominal = (total as f64 * part).ceil() as usize;
        let percent = |percent: i32| (nominal as f64 * f64::from(percent.max(0)) / 100.0).round();
        let lendable = lendable_percent.map_or(0, |of| percent(of) as usize);
        let borrowed = borrowing_percent.map_or(total, |of| percent(of) as usize);
        Self {
            nominal,
            minimum: nominal.saturating_sub(lendable),
            maximum: nominal.saturating_add(borrowed),
        }
    }

    /// Returns the limit that a level begins with, before its demand is known.
    pub fn initial(self) -> usize {
        self.nominal - (self.nominal - self.minimum) / 2
    }
}

/// Returns the most seats that one request of a level with queues may take.
pub fn max_seats(nominal: usize, hand: usize) -> usize {
    let part = (nominal as f64 * OF_NOMINAL).ceil() as usize;
    part.min(nominal / hand.max(1)).max(1)
}

/// A level whose limit is adjusted.
#[derive(Clone, Copy, Debug)]
pub struct Adjustment {
    /// Its configured limits.
    pub limits: Limits,
    /// Its demand.
    pub demand: Demand,
    /// Its limit now.
    pub current: usize,
    /// Whether the level is exempt from limits; what it uses is not there for the others.
    pub is_exempt: bool,
}

impl Adjustment {
    /// Returns what the level keeps in any case: what it has used, but no more than is its own.
    fn least(&self) -> usize {
        let used = self.demand.high_watermark;
        match self.is_exempt {
            true => self.limits.minimum.max(used),
            false => self.limits.minimum.max(self.limits.nominal.min(used)),
        }
    }

    fn target(&self) -> f64 {
        self.demand.smoothed.max(self.least() as f64)
    }
}

/// The limits after an adjustment.
#[derive(Clone, Debug, PartialEq)]
pub struct Adjusted {
    /// The limit and the target of each level, in their order.
    pub levels: Vec<(usize, f64)>,
    /// The proportion of their targets that levels have which are at no bound; 0 if there are not enough seats.
    pub fair_fraction: f64,
}

/// Returns the limits of levels according to their demand, so that idle ones lend to busy ones (upstream:
/// `updateBorrowing`).
pub fn adjust(levels: &[Adjustment]) -> Adjusted {
    let total: usize = levels.iter().map(|level| level.limits.nominal).sum();
    let (exempt, limited): (Vec<&Adjustment>, Vec<&Adjustment>) =
        levels.iter().partition(|level| level.is_exempt);
    let used: usize = exempt.iter().map(|level| level.least()).sum();
    let minimum: usize = limited.iter().map(|level| level.limits.minimum).sum();
    let least: usize = limited.iter().map(|level| level.least()).sum();
    let left = total.saturating_sub(used);
    let (mut fair_fraction, mut given) = (0.0, Vec::new().into_iter());
    let scarce = left <= least;
    if !scarce {
        let shares = limited.iter().map(|level| Share {
            target: level.target(),
            least: level.least() as f64,
            most: level.limits.maximum as f64,
        });
        if let Some((seats, fraction)) = allocate(total as f64, &shares.collect::<Vec<_>>()) {
            (fair_fraction, given) = (fraction, seats.into_iter());
        }
    }
    let part = match least > minimum {
        true => left.saturating_sub(minimum) as f64 / (least - minimum) as f64,
        false => 0.0,
    };
    let mut limit = |level: &Adjustment| {
        if level.is_exempt {
            return level.least();
        }
        if scarce {
            let above = (level.least() - level.limits.minimum) as f64;
            return level.limits.minimum + (above * part).round() as usize;
        }
        given
            .next()
            .map_or(level.current, |seats| seats.round() as usize)
    };
    Adjusted {
        levels: levels
            .iter()
            .map(|level| (limit(level), level.target()))
            .collect(),
        fair_fraction,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn level(limits: Limits, high_watermark: usize, smoothed: f64) -> Adjustment {
        Adjustment {
            limits,
            demand: Demand {
                high_watermark,
                smoothed,
                ..Demand::default()
            },
            current: limits.initial(),
            is_exempt: false,
        }
    }

    fn seats(adjusted: &Adjusted) -> Vec<usize> {
        adjusted.levels.iter().map(|(seats, _)| *seats).collect()
    }

    /// The figures of upstream's levels with its default of 600 seats.
    #[test]
    fn shares_are_rounded_up_and_percentages_are_of_the_nominal_limit() {
        let system = Limits::of(600, 30, 245, Some(33), None);
        assert_eq!((system.nominal, system.minimum), (74, 50));
        assert_eq!((system.maximum, system.initial()), (674, 62));
        let low = Limits::of(600, 100, 245, Some(90), Some(10));
        assert_eq!((low.nominal, low.minimum, low.maximum), (245, 24, 270));
        assert_eq!(Limits::of(600, 0, 245, Some(0), None).nominal, 0);
    }

    #[test]
    fn a_request_takes_a_part_of_the_seats_of_its_level() {
        for (nominal, hand, seats) in [(245, 6, 37), (49, 6, 8), (25, 4, 4), (3, 6, 1), (0, 1, 1)] {
            assert_eq!(max_seats(nominal, hand), seats, "{nominal}");
        }
    }

    #[test]
    fn an_idle_level_lends_to_a_busy_one_and_keeps_its_minimum() {
        let idle = Limits::of(100, 50, 100, Some(50), None);
        let busy = Limits::of(100, 50, 100, Some(0), None);
        let adjusted = adjust(&[level(idle, 0, 0.0), level(busy, 80, 80.0)]);
        assert_eq!(seats(&adjusted), [25, 75]);
        let limited = Limits::of(100, 50, 100, Some(0), Some(20));
        let adjusted = adjust(&[level(idle, 0, 0.0), level(limited, 80, 80.0)]);
        assert_eq!(seats(&adjusted), [40, 60], "it may borrow 20 % of 50");
    }

    #[test]
    fn what_exempt_requests_use_is_taken_from_the_others_down_to_their_minimum() {
        let limits = Limits::of(100, 100, 100, Some(60), None);
        let exempt = |used| Adjustment {
            is_exempt: true,
            ..level(Limits::default(), used, 0.0)
        };
        let adjusted = adjust(&[exempt(40), level(limits, 100, 100.0)]);
        assert_eq!(seats(&adjusted), [40, 60]);
        let adjusted = adjust(&[exempt(500), level(limits, 100, 100.0)]);
        assert_eq!(seats(&adjusted), [500, 40]);
    }

    proptest! {
        #[test]
        fn every_level_stays_within_its_limits(
            levels in prop::collection::vec((1..50_i32, 0..=100_i32, 0..300_usize, 0.0..300.0_f64), 1..8),
        ) {
            let sum = levels.iter().map(|level| i64::from(level.0)).sum();
            let levels: Vec<_> = levels
                .iter()
                .map(|(shares, lendable, used, smoothed)| {
                    level(Limits::of(200, *shares, sum, Some(*lendable), None), *used, *smoothed)
                })
                .collect();
            let adjusted = adjust(&levels);
            let total: usize = levels.iter().map(|level| level.limits.nominal).sum();
            prop_assert!(seats(&adjusted).iter().sum::<usize>() <= total + levels.len());
            for ((seats, _), level) in adjusted.levels.iter().zip(&levels) {
                prop_assert!(*seats >= level.limits.minimum && *seats <= level.limits.maximum);
            }
        }
    }
}
