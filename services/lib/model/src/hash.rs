//! Hashes in names.

/// The alphabet of upstream: without vowels and digits that resemble them, so that no hash is a word.
pub(crate) const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Returns the 32-bit FNV-1a hash.
pub fn fnv32a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Returns the 32-bit FNV-1 hash, which upstream uses for ControllerRevisions.
pub fn fnv32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, &byte| {
        hash.wrapping_mul(0x0100_0193) ^ u32::from(byte)
    })
}

/// Returns the 128-bit FNV-1a hash.
pub fn fnv128a(bytes: &[u8]) -> u128 {
    let prime = (1 << 88) + 0x13b;
    bytes
        .iter()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, &byte| {
            (hash ^ u128::from(byte)).wrapping_mul(prime)
        })
}

/// Returns the decimal digits of a hash in letters and digits that form no words (upstream's `SafeEncodeString`).
pub fn safe(hash: u32) -> String {
    let letter = |digit: u8| ALPHABET[usize::from(digit) % ALPHABET.len()];
    hash.to_string()
        .bytes()
        .map(letter)
        .map(char::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv32a_returns_the_published_values() {
        assert_eq!(fnv32a(b""), 0x811c_9dc5);
        assert_eq!(fnv32a(b"a"), 0xe40c_292c);
        assert_eq!(fnv32a(b"foobar"), 0xbf9c_f968);
    }

    #[test]
    fn fnv128a_returns_the_published_values() {
        for (text, expected) in [
            ("", 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d),
            ("a", 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964),
            ("foobar", 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18),
        ] {
            assert_eq!(fnv128a(text.as_bytes()), expected);
        }
    }

    #[test]
    fn fnv32_returns_the_published_values() {
        assert_eq!(fnv32(b""), 0x811c_9dc5);
        assert_eq!(fnv32(b"a"), 0x050c_5d7e);
        assert_eq!(fnv32(b"foobar"), 0x31f0_b262);
    }

    #[test]
    fn safe_encodes_as_upstream_does() {
        assert_eq!(safe(0), "4");
        assert_eq!(safe(1_234_567_890), "56789bcdf4");
    }
}
