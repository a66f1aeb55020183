//! Shuffle sharding: deals a hand of queues to each flow.

/// The size of the largest hand: validation allows 60 bits of a hash, and a hand of 16 out of 16 needs 64.
const MAX_HAND: usize = 15;

/// Deals hands of `hand` queues out of `deck`, which differ from each other and depend on a hash alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dealer {
    deck: u32,
    hand: u32,
}

impl Dealer {
    /// Returns a dealer. Sizes that validation refuses are made valid: at least one queue, and no more in a hand than
    /// in the deck.
    pub fn new(deck: u32, hand: u32) -> Self {
        let deck = deck.max(1);
        Self {
            deck,
            hand: hand.clamp(1, deck.min(MAX_HAND as u32)),
        }
    }

    /// Returns the size of a hand.
    pub fn hand_size(self) -> u32 {
        self.hand
    }

    /// Returns the hand of a hash. Each card takes the next digit of the hash, in a number system whose base is the
    /// number of queues left; the digit counts the queues that were not dealt before.
    pub fn deal(self, mut hash: u64) -> impl Iterator<Item = u32> {
        let mut digits = [0; MAX_HAND];
        let mut cards = [0; MAX_HAND];
        let hand = self.hand as usize;
        for index in 0..hand {
            let left = u64::from(self.deck) - index as u64;
            let digit = (hash % left) as u32;
            hash /= left;
            digits[index] = digit;
            let mut card = digit;
            for earlier in digits[..index].iter().rev() {
                if card >= *earlier {
                    card += 1;
                }
            }
            cards[index] = card;
        }
        cards.into_iter().take(hand)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Upstream's example: the cards of a hash whose digits are known.
    #[test]
    fn the_digits_of_the_hash_are_the_cards() {
        let deal = |hash| Dealer::new(128, 4).deal(hash).collect::<Vec<_>>();
        assert_eq!(deal(0), [0, 1, 2, 3]);
        assert_eq!(deal(1), [1, 0, 2, 3]);
        assert_eq!(deal(127), [127, 0, 1, 2]);
        assert_eq!(deal(128), [0, 2, 1, 3]);
    }

    #[test]
    fn every_hand_of_a_small_deck_is_dealt_equally_often() {
        let mut hands = std::collections::BTreeMap::new();
        for hash in 0..(5 * 4 * 3 * 7) {
            let mut hand: Vec<_> = Dealer::new(5, 3).deal(hash).collect();
            hand.sort_unstable();
            *hands.entry(hand).or_insert(0) += 1;
        }
        assert_eq!(hands.len(), 10);
        assert!(hands.values().all(|count| *count == 42));
    }

    proptest! {
        #[test]
        fn a_hand_has_different_cards_of_the_deck(deck in 1..200_u32, hand in 1..9_u32, hash: u64) {
            let dealer = Dealer::new(deck, hand);
            let cards: BTreeSet<_> = dealer.deal(hash).collect();
            prop_assert_eq!(cards.len(), dealer.hand_size() as usize);
            prop_assert!(cards.iter().all(|card| *card < deck));
        }
    }
}
