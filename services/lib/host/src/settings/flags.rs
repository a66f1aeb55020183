//! The flags of the command line, derived from the default settings.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command};

use super::Error;
use super::key::Key;
use super::layers::Layers;

const FILE: &str = "config";

/// The command line.
pub struct Flags {
    matches: ArgMatches,
}

impl Flags {
    /// Reads `args`, of which the first is the program's name.
    pub fn parse(
        service: &'static str,
        layers: &Layers,
        args: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, Error> {
        let flagged = layers.keys().iter().filter(|key| key.has_flag());
        let command = Command::new(service)
            .version(env!("CARGO_PKG_VERSION"))
            .override_usage(format!("{service} [OPTIONS]\n       {service} health [OPTIONS]"))
            .after_help("With `health`, queries the readiness of the process that runs with the same settings, and exits with 0 or 1.")
            .arg(file(service))
            .args(flagged.map(|key| flag(key, &layers.docs().summary(key.path()))));
        command
            .try_get_matches_from(args)
            .map(|matches| Self { matches })
            .map_err(flag_error)
    }

    /// Returns the settings file of `--config`.
    pub fn file(&self) -> Option<PathBuf> {
        self.matches.get_one::<String>(FILE).map(PathBuf::from)
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &Key) -> Option<String> {
        // Tables have no flag, and clap fails for undefined ones.
        self.matches
            .try_get_one::<String>(key.path())
            .ok()
            .flatten()
            .cloned()
    }
}

fn file(service: &str) -> Arg {
    Arg::new(FILE).long(FILE).value_name("FILE").help(format!(
        "Settings file [default: deploy/config/{service}.toml, if it exists]"
    ))
}

fn flag(key: &Key, description: &str) -> Arg {
    let (default, variable) = (key.default_text(), key.variable());
    let arg = Arg::new(key.path().to_owned())
        .long(key.flag())
        .value_name("VALUE")
        .allow_hyphen_values(true)
        .help(format!(
            "{description} [default: {default}] [env: {variable}]"
        ));
    match key.is_switch() {
        true => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        false => arg,
    }
}

/// Returns the first line of clap's error, which has the cause.
fn flag_error(error: clap::Error) -> Error {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Error::HelpOrVersion(error.render()),
        _ => {
            let text = error.render().to_string();
            let line = text.lines().next().unwrap_or_default();
            Error::Flag(line.trim_start_matches("error: ").to_owned())
        }
    }
}
