//! Output whose reader may leave before its end, as in `setpoint why … | head`: the command ends then.

/// The exit code that shells report of a command that a closed pipe has ended.
pub const CLOSED_PIPE: i32 = 141;

/// As in the standard library, but a closed pipe is no panic.
macro_rules! print {
    ($($arguments:tt)*) => {{
        use std::io::Write as _;
        if write!(std::io::stdout(), $($arguments)*).is_err() {
            std::process::exit($crate::output::CLOSED_PIPE);
        }
    }};
}

/// As in the standard library, but a closed pipe is no panic.
macro_rules! println {
    () => { print!("\n") };
    ($($arguments:tt)*) => {{
        use std::io::Write as _;
        if writeln!(std::io::stdout(), $($arguments)*).is_err() {
            std::process::exit($crate::output::CLOSED_PIPE);
        }
    }};
}
