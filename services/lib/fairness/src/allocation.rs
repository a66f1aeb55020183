//! Divides seats among levels in proportion to their targets, within bounds.

/// The smallest target, so that a level without demand can be given seats in proportion.
const LEAST_TARGET: f64 = 0.001;
const PRECISION: f64 = 1e-7;
/// The steps of the search; each halves the range, and a double has 53 bits.
const STEPS: usize = 100;

/// The seats of a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    pub target: f64,
    pub least: f64,
    pub most: f64,
}

/// Returns how many of `total` seats each level gets, and the proportion of its target that those have which are not at
/// a bound. The result is the only one in which all have that proportion.
///
/// `None` if the bounds do not allow it.
pub fn allocate(total: f64, shares: &[Share]) -> Option<(Vec<f64>, f64)> {
    let broken = |share: &Share| share.least < 0.0 || share.most < share.least;
    let sum = |of: fn(&Share) -> f64| shares.iter().map(of).sum::<f64>();
    let (least, most) = (sum(|share| share.least), sum(|share| share.most));
    if shares.iter().any(broken) || least > total + PRECISION || most < total - PRECISION {
        return None;
    }
    let of = |share: &Share, proportion: f64| {
        let wanted = share.target.max(LEAST_TARGET) * proportion;
        wanted.clamp(share.least, share.most)
    };
    let given = |proportion: f64| {
        shares
            .iter()
            .map(|share| of(share, proportion))
            .sum::<f64>()
    };
    let bounds = shares
        .iter()
        .map(|share| share.most / share.target.max(LEAST_TARGET));
    let (mut low, mut high) = (0.0, bounds.fold(0.0, f64::max));
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        match given(middle) < total {
            true => low = middle,
            false => high = middle,
        }
    }
    Some((shares.iter().map(|share| of(share, high)).collect(), high))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn share(target: f64, least: f64, most: f64) -> Share {
        Share {
            target,
            least,
            most,
        }
    }

    #[test]
    fn seats_are_divided_in_proportion_to_the_targets() {
        let shares = [share(1.0, 0.0, 100.0), share(3.0, 0.0, 100.0)];
        let (given, fair) = allocate(8.0, &shares).unwrap();
        assert!((given[0] - 2.0).abs() < 1e-6 && (given[1] - 6.0).abs() < 1e-6);
        assert!((fair - 2.0).abs() < 1e-6);
    }

    #[test]
    fn bounds_hold_and_the_others_share_the_rest() {
        let shares = [
            share(10.0, 5.0, 100.0),
            share(10.0, 0.0, 4.0),
            share(0.0, 3.0, 100.0),
        ];
        let (given, _) = allocate(20.0, &shares).unwrap();
        assert!((given[1] - 4.0).abs() < 1e-6, "{given:?}");
        assert!((given[2] - 3.0).abs() < 1e-6, "{given:?}");
        assert!((given[0] - 13.0).abs() < 1e-6, "{given:?}");
    }

    #[test]
    fn bounds_that_cannot_hold_are_refused() {
        assert_eq!(allocate(1.0, &[share(1.0, 2.0, 3.0)]), None);
        assert_eq!(allocate(9.0, &[share(1.0, 2.0, 3.0)]), None);
        assert_eq!(allocate(2.0, &[share(1.0, 3.0, 2.0)]), None);
    }

    proptest! {
        #[test]
        fn all_seats_are_given_within_the_bounds(
            levels in prop::collection::vec((0.0..100.0_f64, 0.0..50.0_f64, 0.0..500.0_f64), 1..8),
            part in 0.0..1.0_f64,
        ) {
            let shares: Vec<_> = levels
                .iter()
                .map(|(target, least, more)| share(target.max(*least), *least, least + more))
                .collect();
            let least: f64 = shares.iter().map(|share| share.least).sum();
            let most: f64 = shares.iter().map(|share| share.most).sum();
            let total = least + (most - least) * part;
            let (given, _) = allocate(total, &shares).unwrap();
            prop_assert!((given.iter().sum::<f64>() - total).abs() < 1e-3);
            for (given, share) in given.iter().zip(&shares) {
                prop_assert!(*given >= share.least - 1e-6 && *given <= share.most + 1e-6);
            }
        }
    }
}
