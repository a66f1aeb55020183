//! Sets of completion indexes in the compressed form of the status: `0-3,5,7,8`.
#![warn(clippy::arithmetic_side_effects)]

use std::cmp::Ordering;
use std::fmt;

/// An ordered set of completion indexes, as closed intervals that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes(Vec<(usize, usize)>);

impl Indexes {
    /// Parses intervals, as far as they are below `completions`. Malformed intervals are skipped.
    pub fn parse(text: &str, completions: usize) -> Self {
        text.split(',')
            .filter_map(|interval| {
                let (first, last) = interval.split_once('-').unwrap_or((interval, interval));
                let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
                let last = last.min(completions.checked_sub(1)?);
                (first <= last).then_some((first, last))
            })
            .collect::<Vec<_>>()
            .into()
    }

    /// Returns the indexes of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        [self.0.as_slice(), other.0.as_slice()].concat().into()
    }

    /// Returns the number of indexes.
    pub fn count(&self) -> usize {
        let lengths = self.0.iter().map(length);
        lengths.fold(0, usize::saturating_add)
    }

    /// Returns whether the set contains an index.
    pub fn contains(&self, index: usize) -> bool {
        let position = self.0.binary_search_by(|(first, last)| match () {
            () if *last < index => Ordering::Less,
            () if *first > index => Ordering::Greater,
            () => Ordering::Equal,
        });
        position.is_ok()
    }

    /// Returns the number of indexes that both sets contain.
    pub fn common(&self, other: &Self) -> usize {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut common = 0_usize;
        while let (Some(&&(first, last)), Some(&&(start, end))) = (left.peek(), right.peek()) {
            let overlap = (first.max(start), last.min(end));
            if overlap.0 <= overlap.1 {
                common = common.saturating_add(length(&overlap));
            }
            match last <= end {
                true => left.next(),
                false => right.next(),
            };
        }
        common
    }

    /// Returns the indexes below `completions` that the set does not contain, in their order.
    pub fn missing(&self, completions: usize) -> impl Iterator<Item = usize> {
        let starts = [0]
            .into_iter()
            .chain(self.0.iter().map(|(_, last)| last.saturating_add(1)));
        let ends = self.0.iter().map(|(first, _)| *first).chain([completions]);
        starts
            .zip(ends)
            .flat_map(move |(start, end)| start..end.min(completions))
    }
}

fn length((first, last): &(usize, usize)) -> usize {
    last.saturating_sub(*first).saturating_add(1)
}

impl From<Vec<(usize, usize)>> for Indexes {
    fn from(mut intervals: Vec<(usize, usize)>) -> Self {
        intervals.sort_unstable();
        let mut merged: Vec<(usize, usize)> = Vec::with_capacity(intervals.len());
        for (first, last) in intervals {
            match merged.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }
}

impl FromIterator<usize> for Indexes {
    fn from_iter<I: IntoIterator<Item = usize>>(indexes: I) -> Self {
        let intervals = indexes.into_iter().map(|index| (index, index));
        intervals.collect::<Vec<_>>().into()
    }
}

/// Writes the form of the status, in which two neighbours are not an interval.
impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (first, last)) in self.0.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            match last.saturating_sub(*first) {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn intervals_are_written_as_upstream_writes_them() {
        for (indexes, text) in [
            (vec![], ""),
            (vec![3], "3"),
            (vec![1, 0], "0,1"),
            (vec![0, 1, 2, 4, 6, 7, 9, 10, 11], "0-2,4,6,7,9-11"),
        ] {
            let set: Indexes = indexes.iter().copied().collect();
            assert_eq!(set.to_string(), text);
            assert_eq!(Indexes::parse(text, 12), set);
        }
    }

    #[test]
    fn parse_cuts_at_the_completions_and_skips_what_is_malformed() {
        assert_eq!(Indexes::parse("0-9,11", 5).to_string(), "0-4");
        assert_eq!(Indexes::parse("x,1-y,2,-,3-1", 5).to_string(), "2");
        assert_eq!(Indexes::parse("0", 0), Indexes::default());
    }

    proptest! {
        #[test]
        fn intervals_behave_as_sets(
            left in prop::collection::btree_set(0..20_usize, 0..20),
            right in prop::collection::btree_set(0..20_usize, 0..20),
            completions in 0..25_usize,
        ) {
            let (one, other): (Indexes, Indexes) = (left.iter().copied().collect(), right.iter().copied().collect());
            let union: Indexes = left.union(&right).copied().collect();
            prop_assert_eq!(one.union(&other), union);
            prop_assert_eq!(one.common(&other), left.intersection(&right).count());
            prop_assert_eq!(one.count(), left.len());
            prop_assert!((0..25).all(|index| one.contains(index) == left.contains(&index)));
            let all: BTreeSet<_> = (0..completions).collect();
            prop_assert!(one.missing(completions).eq(all.difference(&left).copied()));
            prop_assert_eq!(Indexes::parse(&one.to_string(), 20), one);
        }
    }
}
