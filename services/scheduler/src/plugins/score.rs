//! Normalizes the scores of a plugin.

#![warn(clippy::arithmetic_side_effects)]

use crate::plugin::MAX_NODE_SCORE;

/// Whether low or high counts are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// The highest count gets [`MAX_NODE_SCORE`].
    High,
    /// 0 gets [`MAX_NODE_SCORE`], and the highest count 0.
    Low,
}

/// Scales counts to scores (upstream: `DefaultNormalizeScore`).
pub fn normalize(counts: &mut [i64], preference: Preference) {
    let most = counts.iter().copied().max().unwrap_or_default().max(0);
    for count in counts {
        let share = count.saturating_mul(MAX_NODE_SCORE).checked_div(most);
        let share = share.unwrap_or_default();
        *count = match preference {
            Preference::High => share,
            Preference::Low => MAX_NODE_SCORE.saturating_sub(share),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_scaled_by_the_highest() {
        let normalized = |preference, counts: &[i64]| {
            let mut counts = counts.to_vec();
            normalize(&mut counts, preference);
            counts
        };
        assert_eq!(normalized(Preference::Low, &[0, 1, 2]), [100, 50, 0]);
        assert_eq!(normalized(Preference::Low, &[0, 0]), [100, 100]);
        assert_eq!(normalized(Preference::Low, &[0, 1, 2, 3]), [100, 67, 34, 0]);
        assert_eq!(normalized(Preference::High, &[0, 1, 3]), [0, 33, 100]);
        assert_eq!(normalized(Preference::High, &[0, 0]), [0, 0]);
        assert_eq!(normalized(Preference::High, &[]), [0; 0]);
    }
}
