//! Colours of the output: only on a terminal, and only for a user who wants them.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal};

/// A colour of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// The colour of a state that needs nothing.
    Green,
    /// The colour of a state that is to change.
    Yellow,
    /// The colour of a failure.
    Red,
}

impl Colour {
    const fn code(self) -> u8 {
        match self {
            Self::Red => 31,
            Self::Green => 32,
            Self::Yellow => 33,
        }
    }
}

/// The style of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    has_colours: bool,
    is_terminal: bool,
}

impl Style {
    /// Returns the style of the standard output.
    pub fn stdout() -> Self {
        Self::of(io::stdout().is_terminal(), |name| env::var_os(name))
    }

    /// Returns the style of the standard error.
    pub fn stderr() -> Self {
        Self::of(io::stderr().is_terminal(), |name| env::var_os(name))
    }

    /// Returns the style of a stream: `NO_COLOR` with any value turns colours off (no-color.org), and a terminal of the
    /// type `dumb` obeys no control characters at all.
    fn of(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let is_terminal = is_terminal && variable("TERM").is_none_or(|term| term != "dumb");
        let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            has_colours: is_terminal && !refused,
            is_terminal,
        }
    }

    /// Returns whether text can be drawn over.
    pub const fn can_redraw(self) -> bool {
        self.is_terminal
    }

    /// Returns the text in this colour, where the stream shows colours.
    pub fn paint(self, colour: Colour, text: &str) -> String {
        match self.has_colours {
            true => format!("\x1b[{}m{text}\x1b[0m", colour.code()),
            false => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The environment variables of a case.
    type Variables = &'static [(&'static str, &'static str)];

    #[test]
    fn colours_are_for_terminals_whose_user_wants_them() {
        let cases: [(bool, Variables, bool, bool); 6] = [
            (true, &[], true, true),
            (true, &[("TERM", "xterm")], true, true),
            (true, &[("NO_COLOR", "1")], false, true),
            (true, &[("NO_COLOR", "")], true, true),
            (true, &[("TERM", "dumb")], false, false),
            (false, &[("TERM", "xterm")], false, false),
        ];
        for (is_terminal, variables, colours, redraws) in cases {
            let variable = |name: &str| {
                let found = variables.iter().find(|(other, _)| *other == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let style = Style::of(is_terminal, variable);
            let painted = style.paint(Colour::Red, "no");
            let expected = if colours { "\x1b[31mno\x1b[0m" } else { "no" };
            assert_eq!(painted, expected, "{is_terminal} {variables:?}");
            assert_eq!(style.can_redraw(), redraws, "{is_terminal} {variables:?}");
        }
    }
}
