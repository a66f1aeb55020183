//! The ranges that nodes can have, and those that are in use.

use setpoint_model::Cidr;

use crate::NodeIpam;

/// The ranges of the cluster, each divided into those of nodes, which are numbered from 0 in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    ranges: Box<[Cidr]>,
    left_out: Box<[Cidr]>,
    size: u8,
}

/// The ranges of nodes that are in use, of all ranges of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Occupied {
    /// For each range of the cluster, whether each of its parts is in use.
    parts: Vec<Vec<bool>>,
}

impl Pool {
    /// Returns the pool of these settings, which must be valid.
    pub fn new(settings: &NodeIpam) -> Self {
        Self {
            ranges: settings.cluster_cidrs.clone().into(),
            left_out: settings.service_cidrs.clone().into(),
            size: settings.node_cidr_mask_size,
        }
    }

    /// Returns the ranges of the cluster.
    pub fn ranges(&self) -> &[Cidr] {
        &self.ranges
    }

    /// Returns whether the range is within one of the cluster.
    pub fn has(&self, range: Cidr) -> bool {
        self.ranges.iter().any(|whole| range.is_within(*whole))
    }

    /// Returns the number of ranges of nodes that a range of the cluster has.
    pub fn parts(&self, whole: Cidr) -> usize {
        1 << self.size.saturating_sub(whole.bits()).min(16)
    }

    /// Returns the parts that overlap one of these ranges or a Service range, in time linear in both.
    pub fn occupied(&self, used: impl Iterator<Item = Cidr> + Clone) -> Occupied {
        let parts = self.ranges.iter().map(|whole| {
            let used = used.clone().chain(self.left_out.iter().copied());
            self.occupied_in(*whole, used)
        });
        Occupied {
            parts: parts.collect(),
        }
    }

    /// Returns which parts of a range of the cluster overlap one of the others. Each of those covers parts without a
    /// gap, so that the first and the last one are enough.
    fn occupied_in(&self, whole: Cidr, used: impl Iterator<Item = Cidr>) -> Vec<bool> {
        let count = self.parts(whole);
        let mut begun = vec![0_i64; count + 1];
        for range in used.filter(|range| range.overlaps(whole)) {
            let first = self.index(whole, range.first().max(whole.first()).to_bits());
            let last = self.index(whole, range.last().min(whole.last()).to_bits());
            begun[first] += 1;
            begun[last + 1] -= 1;
        }
        let mut open = 0;
        let parts = begun[..count].iter().map(|change| {
            open += change;
            open > 0
        });
        parts.collect()
    }

    /// Returns the number of the part that has an address of the range.
    fn index(&self, whole: Cidr, ip: u32) -> usize {
        let offset = ip - whole.first().to_bits();
        let index = offset.checked_shr(32 - u32::from(self.size)).unwrap_or(0);
        usize::try_from(index).unwrap_or(usize::MAX)
    }

    /// Returns a part of a range of the cluster by its number.
    fn part(&self, whole: Cidr, index: usize) -> Option<Cidr> {
        let offset = u32::try_from(index).ok()?;
        let offset = offset.checked_shl(32 - u32::from(self.size)).unwrap_or(0);
        Cidr::new((whole.first().to_bits() | offset).into(), self.size)
    }

    /// Returns whether a part of the pool is in use.
    pub fn is_used(&self, occupied: &Occupied, part: Cidr) -> bool {
        let all = self.ranges.iter().zip(&occupied.parts);
        let mut of = all.filter(|(whole, _)| part.is_within(**whole));
        of.any(|(whole, parts)| {
            let index = self.index(*whole, part.first().to_bits());
            parts.get(index).is_some_and(|used| *used)
        })
    }

    /// Returns the free parts in order, each with the number of parts that were looked at for it.
    pub fn free<'a>(&'a self, occupied: &'a Occupied) -> impl Iterator<Item = (Cidr, usize)> + 'a {
        let all = self.ranges.iter().zip(&occupied.parts);
        let all =
            all.flat_map(|(whole, parts)| parts.iter().enumerate().map(move |it| (*whole, it)));
        let mut tries = 0;
        all.filter_map(move |(whole, (index, used))| {
            tries += 1;
            let part = (!used).then(|| self.part(whole, index)).flatten()?;
            Some((part, std::mem::take(&mut tries)))
        })
    }
}

impl Occupied {
    /// Returns the number of parts in use of each range of the cluster.
    pub fn counts(&self) -> impl Iterator<Item = usize> {
        let of = |parts: &Vec<bool>| parts.iter().filter(|used| **used).count();
        self.parts.iter().map(of)
    }

    /// Returns the number of parts of each range of the cluster that are in use here and not in `later`.
    pub fn released(&self, later: &Self) -> impl Iterator<Item = usize> {
        let pairs = self.parts.iter().zip(&later.parts);
        pairs.map(|(old, new)| {
            let both = old.iter().zip(new);
            both.filter(|(old, new)| **old && !**new).count()
        })
    }
}
