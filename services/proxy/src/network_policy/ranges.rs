//! The addresses of an `ipBlock`.

use std::net::Ipv4Addr;

use setpoint_model::Cidr;

/// A range of addresses: the first and the last one.
pub type Range = (Ipv4Addr, Ipv4Addr);

/// Returns the addresses of `block` that are in none of `except`, as ranges in ascending order that do not touch.
pub fn without(block: Cidr, except: &[Cidr]) -> Vec<Range> {
    let mut except: Vec<_> = except.iter().filter(|one| one.overlaps(block)).collect();
    except.sort();
    let (mut ranges, last) = (Vec::new(), block.last().to_bits());
    let mut next = Some(block.first().to_bits());
    for one in except {
        let Some(first) = next else { break };
        let (gone, end) = (one.first().to_bits(), one.last().to_bits());
        if gone > first {
            ranges.push((first, gone - 1));
        }
        next = end.checked_add(1).map(|after| after.max(first));
    }
    let rest = next.filter(|first| *first <= last);
    ranges.extend(rest.map(|first| (first, last)));
    let address = |(first, last)| (Ipv4Addr::from_bits(first), Ipv4Addr::from_bits(last));
    ranges.into_iter().map(address).collect()
}

/// Returns ranges in ascending order that have the same addresses and neither overlap nor touch, as sets of nftables
/// need them.
pub fn merged(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort();
    let mut merged: Vec<Range> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(former) if first.to_bits() <= former.1.to_bits().saturating_add(1) => {
                former.1 = former.1.max(last);
            }
            _ => merged.push((first, last)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cidrs() -> impl Strategy<Value = Cidr> {
        (0_u32..64, 26_u8..=32)
            .prop_map(|(ip, bits)| Cidr::new(Ipv4Addr::from_bits(ip), bits).unwrap())
    }

    #[test]
    fn blocks_at_both_ends_of_all_addresses_are_left_out() {
        let cidr = |text: &str| text.parse::<Cidr>().unwrap();
        let all = cidr("0.0.0.0/0");
        let except = [cidr("255.0.0.0/8"), cidr("0.0.0.0/8")];
        let expected = ([1, 0, 0, 0].into(), [254, 255, 255, 255].into());
        assert_eq!(without(all, &except), [expected]);
        assert_eq!(without(all, &[all]), []);
    }

    proptest! {
        #[test]
        fn an_address_is_in_the_ranges_if_it_is_in_a_block_and_not_excepted(
            blocks in prop::collection::vec((cidrs(), prop::collection::vec(cidrs(), 0..4)), 0..4),
        ) {
            let ranges = blocks.iter().flat_map(|(block, except)| without(*block, except));
            let ranges = merged(ranges.collect());
            for ip in (0..130).map(Ipv4Addr::from_bits) {
                let is_excepted = |except: &[Cidr]| except.iter().any(|one| one.contains(ip));
                let mut all = blocks.iter();
                let expected = all.any(|(block, except)| block.contains(ip) && !is_excepted(except));
                let is_there = ranges.iter().any(|(first, last)| (first..=last).contains(&&ip));
                prop_assert_eq!(is_there, expected);
            }
            let apart = |pair: &[Range]| pair[0].1.to_bits() + 1 < pair[1].0.to_bits();
            prop_assert!(ranges.windows(2).all(apart));
        }
    }
}
