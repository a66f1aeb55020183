//! The processes of this machine.

use std::fs;
use std::path::Path;

/// Returns the number of processes of this machine that have `word` among their arguments.
pub fn processes_with(word: &str) -> usize {
    process_ids_with(word).len()
}

/// Returns the ids of these processes.
pub fn process_ids_with(word: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let id = |folder: &Path| folder.file_name()?.to_str()?.parse().ok();
    let has = |folder: &Path| {
        let line = fs::read(folder.join("cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.any(|argument| argument == word.as_bytes())
    };
    let folders = entries.map(|entry| entry.path());
    let found = folders.filter_map(|folder| id(&folder).filter(|_| has(&folder)));
    found.collect()
}
