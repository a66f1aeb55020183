//! `setpoint man`: pages of the manual.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command};

/// The options of `setpoint man`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Directory for a page of each command, such as ~/.local/share/man/man1; without it, the page of `setpoint` itself
    /// is printed, for example for `man -l -`
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints the page of the command, or writes those of all subcommands.
///
/// # Errors
/// The pages cannot be written.
pub fn man(command: Command, options: &Options) -> anyhow::Result<ExitCode> {
    let Some(dir) = &options.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        io::stdout().write_all(&page)?;
        return Ok(ExitCode::SUCCESS);
    };
    let written = fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir));
    written.with_context(|| format!("cannot write {}", dir.display()))?;
    println!("The pages are in {}", dir.display());
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use crate::cli;

    use super::*;

    #[test]
    fn each_command_has_a_page_with_its_options() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("man1");
        let options = Options {
            dir: Some(dir.clone()),
        };
        man(cli::command(), &options).unwrap();
        let page = |name: &str| fs::read_to_string(dir.join(format!("{name}.1"))).unwrap();
        assert!(
            page("setpoint").contains("setpoint\\-why(1)"),
            "{}",
            page("setpoint")
        );
        for command in cli::command()
            .get_subcommands()
            .filter(|one| !one.is_hide_set())
        {
            let page = page(&format!("setpoint-{}", command.get_name())).replace('\\', "");
            let shown = command.get_arguments().filter(|one| !one.is_hide_set());
            for option in shown.filter_map(clap::Arg::get_long) {
                assert!(page.contains(&format!("--{option}")), "{command}: {option}");
            }
        }
        assert!(!dir.join("setpoint-relay.1").exists());
    }
}
