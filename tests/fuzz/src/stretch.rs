//! Makes long inputs from short ones, to find code that is not linear in the length of its input.

use std::borrow::Cow;

/// The length of a stretched input.
const LENGTH: usize = 60_000;

/// Splits the input at the first two bytes `FF`, which UTF-8 text does not have, and repeats the middle part up to
/// [`LENGTH`]. `#` in it becomes the number of the repetition. Without two such bytes the input is unchanged.
pub fn stretch(input: &[u8]) -> Cow<'_, [u8]> {
    let mut parts = input.splitn(3, |byte| *byte == 0xff);
    let (Some(head), Some(unit), Some(tail)) = (parts.next(), parts.next(), parts.next()) else {
        return input.into();
    };
    let mut long = head.to_vec();
    let unit = String::from_utf8_lossy(unit);
    let mut number = 0;
    while !unit.is_empty() && long.len() + unit.len() + tail.len() < LENGTH {
        long.extend_from_slice(unit.replace('#', &number.to_string()).as_bytes());
        number += 1;
    }
    long.extend_from_slice(tail);
    long.into()
}

/// As [`stretch`], for targets with text input.
pub fn stretch_text(input: &[u8]) -> String {
    String::from_utf8_lossy(&stretch(input)).into_owned()
}
