//! Ranges of indexes such as `1,3-5,7`.

/// Validates the format, and returns the number of indexes.
///
/// # Errors
/// If a range is malformed, not below `completions`, or not after the one before.
pub fn count(text: &str, completions: i32) -> Result<i32, String> {
    let mut last: Option<i32> = None;
    let mut total = 0_i32;
    for range in text.split(',').filter(|_| !text.is_empty()) {
        let (start, end) = interval(range, completions)?;
        if let Some(last) = last.filter(|last| *last >= start) {
            return Err(format!(
                "non-increasing order, previous: {last}, current: {start}"
            ));
        }
        let length = end.saturating_sub(start).saturating_add(1);
        total = total.saturating_add(length);
        last = Some(end);
    }
    Ok(total)
}

/// Returns the first index that both lists contain. Malformed ranges contain none. The ranges of each list must be in
/// order.
pub fn overlap(completed: &str, failed: &str, completions: i32) -> Option<i32> {
    let parse = |text: &str| -> Vec<_> {
        let ranges = text.split(',');
        ranges
            .filter_map(|range| interval(range, completions).ok())
            .collect()
    };
    let (completed, failed) = (parse(completed), parse(failed));
    let (mut left, mut right) = (completed.iter().peekable(), failed.iter().peekable());
    while let (Some(&(from, to)), Some(&(start, end))) = (left.peek(), right.peek()) {
        if from <= end && start <= to {
            return Some(*from.max(start));
        }
        match from <= start {
            true => left.next(),
            false => right.next(),
        };
    }
    None
}

fn interval(text: &str, completions: i32) -> Result<(i32, i32), String> {
    let mut limits = text.split('-');
    let (first, second) = (limits.next().unwrap_or_default(), limits.next());
    if limits.next().is_some() {
        return Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at most two parts separated by '-'"
        ));
    }
    let start = index(first, completions)?;
    let end = second
        .map(|second| index(second, completions))
        .transpose()?;
    if let Some(end) = end.filter(|end| start >= *end) {
        return Err(format!(
            "non-increasing order, previous: {start}, current: {end}"
        ));
    }
    Ok((start, end.unwrap_or(start)))
}

fn index(text: &str, completions: i32) -> Result<i32, String> {
    let index: i64 = text
        .parse()
        .map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
    match i32::try_from(index) {
        Ok(index) if index < completions => Ok(index),
        _ => Err(format!("too large index: {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_counted() {
        assert_eq!(count("", 5), Ok(0));
        assert_eq!(count("0,2-4", 5), Ok(4));
        for (text, error) in [
            ("5", "too large index: \"5\""),
            ("a", "cannot convert string to integer for index: \"a\""),
            ("3-1", "non-increasing order, previous: 3, current: 1"),
            ("2,2", "non-increasing order, previous: 2, current: 2"),
        ] {
            assert_eq!(count(text, 5).unwrap_err(), error);
        }
        assert!(count("1-2-3", 5).unwrap_err().contains("at most two parts"));
    }

    #[test]
    fn overlaps_are_found() {
        assert_eq!(overlap("0-2,5", "3,5-6", 8), Some(5));
        assert_eq!(overlap("0-2,5", "3-4,6", 8), None);
        assert_eq!(overlap("0-2,x,5", "1", 8), Some(1));
        assert_eq!(overlap("", "", 8), None);
    }
}
