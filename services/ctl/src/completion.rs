//! `setpoint completion`: scripts by which shells complete the command line.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};

/// The options of `setpoint completion`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The shell that reads the script
    #[arg(value_enum)]
    shell: Shell,
}

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    /// The shell of GNU.
    #[value(help = "source <(setpoint completion bash)")]
    Bash,
    /// The Z shell.
    #[value(help = "setpoint completion zsh > \"${fpath[1]}/_setpoint\"")]
    Zsh,
    /// The friendly interactive shell.
    #[value(help = "setpoint completion fish > ~/.config/fish/completions/setpoint.fish")]
    Fish,
}

impl From<Shell> for clap_complete::Shell {
    fn from(shell: Shell) -> Self {
        match shell {
            Shell::Bash => Self::Bash,
            Shell::Zsh => Self::Zsh,
            Shell::Fish => Self::Fish,
        }
    }
}

/// Prints the script for a shell.
///
/// # Errors
/// The standard output cannot be written.
pub fn completion(command: Command, options: &Options) -> anyhow::Result<ExitCode> {
    io::stdout().write_all(&script(command, options.shell))?;
    Ok(ExitCode::SUCCESS)
}

fn script(mut command: Command, shell: Shell) -> Vec<u8> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(
        clap_complete::Shell::from(shell),
        &mut command,
        name,
        &mut script,
    );
    script
}

#[cfg(test)]
mod tests {
    use std::process::Command as Process;

    use crate::cli;

    use super::*;

    fn text(shell: Shell) -> String {
        String::from_utf8(script(cli::command(), shell)).unwrap()
    }

    #[test]
    fn each_shell_completes_every_command() {
        for shell in Shell::value_variants() {
            let text = text(*shell);
            for command in cli::command()
                .get_subcommands()
                .filter(|one| !one.is_hide_set())
            {
                assert!(text.contains(command.get_name()), "{shell:?}: {command}");
            }
            assert!(text.contains("kubeconfig"), "{shell:?}");
        }
    }

    #[test]
    fn bash_completes_commands_options_and_values() {
        for (words, expected) in [
            ("lea", "leaders"),
            ("why --outp", "--output"),
            ("up --profile f", "fast"),
            ("completion z", "zsh"),
        ] {
            let line = format!("setpoint {words}");
            let last = line.split(' ').count() - 1;
            let complete = format!(
                "{}\nCOMP_WORDS=({line}); COMP_CWORD={last}\n\
                 _setpoint setpoint \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{}]}}\"\n\
                 echo \"${{COMPREPLY[@]}}\"",
                text(Shell::Bash),
                last - 1
            );
            let output = Process::new("bash").args(["-c", &complete]).output();
            let output = String::from_utf8(output.unwrap().stdout).unwrap();
            assert_eq!(output.trim(), expected, "{line}");
        }
    }
}
