//! Termination messages: the limits of their length. Pure.

/// Maximum length of a termination message in bytes.
pub const MAX_MESSAGE: usize = 4096;
/// Maximum length in bytes and lines of a message that is the end of a log.
pub const MAX_LOG: usize = 2048;
pub const MAX_LOG_LINES: usize = 80;

/// Returns the message in a file: its end, as the kubelet reads it.
pub fn of_file(content: &[u8]) -> String {
    end(content, MAX_MESSAGE)
}

/// Returns the message in a log: its last lines.
pub fn of_log(log: &[u8]) -> String {
    let lines = log.strip_suffix(b"\n").unwrap_or(log);
    let breaks = lines
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, byte)| **byte == b'\n');
    let first = breaks
        .map(|(place, _)| place.saturating_add(1))
        .nth(MAX_LOG_LINES - 1);
    end(
        log.get(first.unwrap_or_default()..).unwrap_or_default(),
        MAX_LOG,
    )
}

fn end(bytes: &[u8], limit: usize) -> String {
    let start = bytes.len().saturating_sub(limit);
    String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_end_of_its_file() {
        let long = "x".repeat(MAX_MESSAGE) + "end";
        let message = of_file(long.as_bytes());
        assert!(message.len() == MAX_MESSAGE && message.ends_with("xend"));
        assert_eq!(of_file(b"bye"), "bye");
    }

    #[test]
    fn a_message_from_a_log_has_at_most_eighty_lines_and_two_kibibytes() {
        let log: String = (0..100).map(|line| format!("{line}\n")).collect();
        let message = of_log(log.as_bytes());
        assert!(
            message.starts_with("20\n") && message.ends_with("\n99\n"),
            "{message}"
        );
        let long = "y".repeat(3000);
        assert_eq!(of_log(long.as_bytes()).len(), MAX_LOG);
        assert_eq!(of_log(b"one\ntwo"), "one\ntwo");
    }
}
