//! What a fake container does with its life, read off the command that it was given.

use std::time::Duration;

/// How a fake container ends by itself, if it does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Script {
    /// After this long.
    pub after: Duration,
    /// With this exit code.
    pub code: i32,
}

impl Script {
    /// Knows `true`, `false`, `sleep N` and `sh -c "exit N"`; everything else runs until it is stopped.
    pub fn of(command: &[String]) -> Option<Self> {
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        let exit = |code| {
            Some(Self {
                after: Duration::ZERO,
                code,
            })
        };
        match words.as_slice() {
            ["true"] => exit(0),
            ["false"] => exit(1),
            ["sleep", seconds] => Some(Self {
                after: Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?,
                code: 0,
            }),
            ["sh", "-c", line] => exit(line.strip_prefix("exit ")?.trim().parse().ok()?),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(command: &[&str]) -> Option<(u64, i32)> {
        let command: Vec<_> = command.iter().map(|word| (*word).to_owned()).collect();
        Script::of(&command).map(|script| (script.after.as_secs(), script.code))
    }

    #[test]
    fn commands_that_end_by_themselves_are_known() {
        assert_eq!(script(&["true"]), Some((0, 0)));
        assert_eq!(script(&["false"]), Some((0, 1)));
        assert_eq!(script(&["sleep", "5"]), Some((5, 0)));
        assert_eq!(script(&["sh", "-c", "exit 3"]), Some((0, 3)));
    }

    #[test]
    fn everything_else_runs_until_it_is_stopped() {
        assert_eq!(script(&[]), None);
        assert_eq!(script(&["sleep", "infinity"]), None);
        assert_eq!(script(&["nginx"]), None);
    }
}
