//! The addresses of an `ipBlock`.

use setpoint_model::Cidr;

/// Returns the addresses of `block` that are in none of `except`, as ranges in ascending order that do not overlap.
///
/// At most 31 ranges for each range of `except`.
pub fn without(block: Cidr, except: &[Cidr]) -> Vec<Cidr> {
    let inside: Vec<_> = except.iter().filter(|one| one.overlaps(block)).collect();
    if inside.is_empty() {
        return vec![block];
    }
    if inside.iter().any(|one| block.is_within(**one)) {
        return Vec::new();
    }
    let inside: Vec<_> = inside.into_iter().copied().collect();
    let halves = halves(block).into_iter().flatten();
    halves.flat_map(|half| without(half, &inside)).collect()
}

/// Returns both halves of a range; `None` twice for one address.
fn halves(block: Cidr) -> [Option<Cidr>; 2] {
    let bits = block.bits().saturating_add(1);
    [block.first(), block.last()].map(|ip| Cidr::new(ip, bits))
}

/// Returns the ranges that are not within another one, in ascending order.
pub fn outermost(mut ranges: Vec<Cidr>) -> Vec<Cidr> {
    // A range comes before those within it.
    ranges.sort_unstable_by_key(|range| (range.first(), range.bits()));
    let mut kept: Vec<Cidr> = Vec::new();
    for range in ranges {
        if !kept.last().is_some_and(|former| range.is_within(*former)) {
            kept.push(range);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    fn cidrs() -> impl Strategy<Value = Cidr> {
        (0_u32..64, 26_u8..=32)
            .prop_map(|(ip, bits)| Cidr::new(Ipv4Addr::from_bits(ip), bits).unwrap())
    }

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn blocks_at_both_ends_of_all_addresses_are_left_out() {
        let all = cidr("0.0.0.0/0");
        let rest = without(all, &[cidr("128.0.0.0/1"), cidr("0.0.0.0/2")]);
        assert_eq!(rest, [cidr("64.0.0.0/2")]);
        assert_eq!(without(all, &[all]), []);
        assert_eq!(without(all, &[cidr("9.9.9.9/32")]).len(), 32);
    }

    proptest! {
        #[test]
        fn an_address_is_in_the_ranges_if_it_is_in_a_block_and_not_excepted(
            blocks in prop::collection::vec((cidrs(), prop::collection::vec(cidrs(), 0..4)), 0..4),
        ) {
            let ranges = blocks.iter().flat_map(|(block, except)| without(*block, except));
            let ranges = outermost(ranges.collect());
            for ip in (0..130).map(Ipv4Addr::from_bits) {
                let is_excepted = |except: &[Cidr]| except.iter().any(|one| one.contains(ip));
                let mut all = blocks.iter();
                let expected = all.any(|(block, except)| block.contains(ip) && !is_excepted(except));
                prop_assert_eq!(ranges.iter().any(|range| range.contains(ip)), expected);
            }
            prop_assert!(ranges.windows(2).all(|pair| pair[0].last() < pair[1].first()));
        }
    }
}
