//! Blocks of numbers, by which rules find the endpoints of a chain in a map of the whole table.
//!
//! A rule draws a number of the block of its chain: `numgen random mod <endpoints> offset <first>`. 2026-11: we chose a
//! fixed number of maps over one within each rule, because the kernel's time for a set grows with the number of sets:
//! 10 000 Services took more than 20 s. With one map for all, its time for an element grows with the number of rules
//! that use the map. It would be wrong if either time were constant.

use std::collections::{BTreeMap, HashMap};

/// Consecutive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    first: u32,
    /// The number of numbers, a power of two.
    size: u32,
}

/// The blocks of chains. Sizes are powers of two, so that a chain keeps its block through most changes.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    used: HashMap<String, Block>,
    /// The first numbers of blocks that are free, by size.
    free: BTreeMap<u32, Vec<u32>>,
    next: u32,
}

impl Blocks {
    /// Returns the first number of the block of a chain; 0 if it has none.
    pub fn of(&self, chain: &str) -> u32 {
        self.used.get(chain).map_or(0, |block| block.first)
    }

    /// Gives a chain a block with room for `count` numbers, in place of one of another size, and returns its first
    /// number.
    pub fn fit(&mut self, chain: &str, count: usize) -> u32 {
        let size = u32::try_from(count)
            .unwrap_or(u32::MAX >> 1)
            .next_power_of_two();
        match self.used.get(chain) {
            Some(block) if block.size == size => return block.first,
            _ => self.release(chain),
        }
        let freed = self.free.get_mut(&size).and_then(Vec::pop);
        let first = freed.unwrap_or_else(|| {
            let first = self.next;
            self.next = first.saturating_add(size);
            first
        });
        self.used.insert(chain.to_owned(), Block { first, size });
        first
    }

    /// Takes the block of a chain, if it has one.
    pub fn release(&mut self, chain: &str) {
        if let Some(Block { first, size }) = self.used.remove(chain) {
            self.free.entry(size).or_default().push(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap_and_are_used_again() {
        let mut blocks = Blocks::default();
        let first = blocks.fit("a", 3);
        let second = blocks.fit("b", 4);
        assert_eq!(blocks.fit("a", 4), first, "it has room");
        assert!(first.abs_diff(second) >= 4);
        let larger = blocks.fit("a", 5);
        assert!(larger >= second + 4);
        assert_eq!(blocks.fit("c", 4), first);
        blocks.release("b");
        assert_eq!((blocks.of("b"), blocks.fit("d", 3)), (0, second));
    }
}
