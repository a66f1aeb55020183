//! The processes of this machine.

use std::fs;

/// Returns the number of processes of this machine that have `word` among their arguments.
pub fn processes_with(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let has = |line: &Vec<u8>| {
        let mut words = line.split(|byte| *byte == 0);
        words.any(|argument| argument == word.as_bytes())
    };
    lines.filter(has).count()
}
