//! Long inputs from short ones: what is not linear in its input shows at a length that mutation hardly reaches.

use std::borrow::Cow;

/// The length of a stretched input.
const LENGTH: usize = 60_000;

/// Cuts an input with two or more bytes `FF`, which no UTF-8 text holds, at the first two of them, and repeats the
/// middle part up to [`LENGTH`]. `#` in the repeated part becomes the number of the repetition, so that parts differ.
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

/// As [`stretch`], for targets that read text.
pub fn stretch_text(input: &[u8]) -> String {
    String::from_utf8_lossy(&stretch(input)).into_owned()
}
