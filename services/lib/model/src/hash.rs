//! Short names for long things.

/// Without vowels, and without digits that look like letters: no hash spells a word.
pub(crate) const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// FNV-1a in 32 bits.
pub fn fnv32a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// The number in letters that are safe in a name.
pub(crate) fn safe(hash: u32) -> String {
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
    fn fnv_gives_the_published_values() {
        assert_eq!(fnv32a(b""), 0x811c_9dc5);
        assert_eq!(fnv32a(b"a"), 0xe40c_292c);
        assert_eq!(fnv32a(b"foobar"), 0xbf9c_f968);
    }

    #[test]
    fn numbers_are_written_as_upstream_writes_them() {
        assert_eq!(safe(0), "4");
        assert_eq!(safe(1_234_567_890), "56789bcdf4");
    }
}
