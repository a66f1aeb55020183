//! Breaks ties between nodes.

/// Returns a hash of the node's index and the seed, which breaks ties evenly and, for a seed, repeatably.
pub const fn tie_break(node: u64, seed: u64) -> u64 {
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = (node ^ seed).wrapping_mul(MIX);
    mixed.rotate_left(32).wrapping_mul(MIX)
}
