//! Tests of loading settings from all layers.

use std::io::Write;

use serde::{Deserialize, Serialize};

use super::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Demo {
    listen: SocketAddr,
    /// Number of `workers`.
    workers: usize,
    election: Election,
    node_name: Option<String>,
    endpoints: Vec<String>,
    labels: std::collections::BTreeMap<String, String>,
    mode: Mode,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Election {
    /// Whether to elect a leader.
    leader_elect: bool,
    #[serde(with = "DurationText")]
    lease_duration: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Process,
    Simulated,
}

impl Default for Election {
    fn default() -> Self {
        Self {
            leader_elect: true,
            lease_duration: Duration::from_secs(15),
        }
    }
}

impl Default for Demo {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 6443).into(),
            workers: 4,
            election: Election::default(),
            node_name: None,
            endpoints: vec!["http://127.0.0.1:2379".to_owned()],
            labels: Default::default(),
            mode: Mode::Process,
        }
    }
}

impl Settings for Demo {
    fn validate(&self) -> Result<(), String> {
        if self.workers == 0 {
            Err("workers must not be 0".to_owned())
        } else {
            Ok(())
        }
    }
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn load_demo(args: &[&str], env: &[(&str, &str)]) -> Result<(Common, Demo), Error> {
    let args = ["demo"].iter().chain(args).map(OsString::from);
    let (common, demo, ()) = load("demo", &(), args, variables(env))?;
    Ok((common, demo))
}

fn variables(env: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    |name| {
        env.iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| (*value).to_owned())
    }
}

fn load_error(args: &[&str], env: &[(&str, &str)]) -> String {
    load_demo(args, env).unwrap_err().to_string()
}

#[test]
fn without_file_variables_and_flags_the_defaults_apply() {
    let (common, demo) = load_demo(&[], &[]).unwrap();
    assert_eq!(demo, Demo::default());
    let hostname = nix::unistd::gethostname().unwrap();
    let hostname = hostname.to_str().unwrap().to_lowercase();
    assert_eq!(common.instance, format!("demo-{hostname}"));
    assert_eq!(
        common.listen.port(),
        6443,
        "the service's default replaces the host's"
    );
    assert_eq!(common.drain, Duration::from_secs(10));
}

#[test]
fn flags_override_variables_and_variables_override_the_file() {
    let file = file(
        "workers = 5\nmode = \"simulated\"\n[election]\nlease_duration = \"5s\"\nleader_elect = false\n",
    );
    let config = format!("--config={}", file.path().display());
    let env = [
        ("SETPOINT__WORKERS", "6"),
        ("SETPOINT__ELECTION__LEASE_DURATION", "6s"),
    ];
    let (_, demo) = load_demo(&[&config, "--workers", "7"], &env).unwrap();
    assert_eq!(demo.mode, Mode::Simulated, "from the file");
    assert!(!demo.election.leader_elect, "from the file");
    assert_eq!(
        demo.election.lease_duration,
        Duration::from_secs(6),
        "from the environment"
    );
    assert_eq!(demo.workers, 7, "from the flag");
}

#[test]
fn flags_set_values_of_every_type() {
    let args = [
        "--node-name",
        "a",
        "--endpoints",
        "http://a:1,http://b:2",
        "--election-leader-elect=false",
        "--mode",
        "simulated",
    ];
    let (_, demo) = load_demo(&args, &[]).unwrap();
    assert_eq!(demo.node_name.as_deref(), Some("a"));
    assert_eq!(demo.endpoints, ["http://a:1", "http://b:2"]);
    assert!(!demo.election.leader_elect);
    assert_eq!(demo.mode, Mode::Simulated);
}

#[test]
fn a_table_that_is_empty_by_default_accepts_any_key_of_a_file() {
    let file = file("[labels]\nzone = \"a\"\n");
    let (_, demo) = load_demo(&["--config", file.path().to_str().unwrap()], &[]).unwrap();
    assert_eq!(demo.labels["zone"], "a");
}

#[test]
fn errors_are_one_line_with_the_setting_and_its_origin() {
    let cases = [
        (
            load_error(&["--workers", "many"], &[]),
            ["workers", "--workers"],
        ),
        (
            load_error(&[], &[("SETPOINT__WORKERS", "-1")]),
            ["workers", "SETPOINT__WORKERS"],
        ),
        (load_error(&["--mode", "docker"], &[]), ["docker", "mode"]),
        (
            load_error(&["--election-lease-duration", "15"], &[]),
            ["election.lease_duration", "secs"],
        ),
        (
            load_error(&["--listen", "here"], &[]),
            ["socket address", "listen"],
        ),
        (
            load_error(&["--wrokers", "1"], &[]),
            ["--wrokers", "--help"],
        ),
        (
            load_error(&["--config", "/nowhere/demo.toml"], &[]),
            ["/nowhere/demo.toml", "No such file"],
        ),
        (
            load_error(&["--workers", "0"], &[]),
            ["invalid settings", "workers must not be 0"],
        ),
    ];
    for (line, words) in cases {
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn a_file_with_an_unknown_setting_or_invalid_toml_is_rejected() {
    let typo = file("[election]\nlease_durration = \"5s\"\n");
    let line = load_error(&["--config", typo.path().to_str().unwrap()], &[]);
    assert!(line.contains("election.lease_durration"), "{line}");
    let broken = file("workers = = 3");
    let line = load_error(&["--config", broken.path().to_str().unwrap()], &[]);
    assert_eq!(line.lines().count(), 1, "{line}");
}

#[test]
fn help_names_every_setting_with_its_default_and_variable() {
    let Err(Error::HelpOrVersion(help)) = load_demo(&["--help"], &[]) else {
        panic!("no help")
    };
    let help = help.to_string();
    for word in [
        "--config <FILE>",
        "--workers <VALUE>",
        "Number of workers [default: 4]",
        "Whether to elect a leader [",
        "Time for running work to end at shutdown [",
        "[default: 4]",
        "[env: SETPOINT__ELECTION__LEASE_DURATION]",
        "[default: 15s]",
        "[default: demo-",
        "deploy/config/demo.toml",
    ] {
        assert!(help.contains(word), "{word} is not in\n{help}");
    }
    assert!(matches!(
        load_demo(&["--version"], &[]),
        Err(Error::HelpOrVersion(_))
    ));
}

/// A table `[times]` beside the settings of the service.
struct Times;

impl Extension for Times {
    type Settings = Election;

    fn declare(&self, layers: &mut Layers) {
        layers.table::<Election>("times");
        layers.table::<()>("nothing");
    }

    fn read(&self, merged: &Merged) -> Result<Election, Error> {
        merged.table("times")
    }
}

impl Settings for Election {
    fn validate(&self) -> Result<(), String> {
        first_broken(&[
            (self.lease_duration > Duration::ZERO, "it must be positive"),
            (self.leader_elect, "there must be a leader"),
        ])
    }
}

fn load_times(env: &[(&str, &str)], text: &str) -> Result<Election, String> {
    let file = file(text);
    let args = ["demo".into(), "--config".into(), file.path().into()];
    let loaded = load::<Demo, _>("demo", &Times, args, variables(env));
    let (_, _, times) = loaded.map_err(|error| error.to_string())?;
    Ok(times)
}

#[test]
fn an_extension_has_a_table_of_its_own_in_every_layer() {
    let times = |seconds| Election {
        lease_duration: Duration::from_secs(seconds),
        ..Election::default()
    };
    assert_eq!(load_times(&[], ""), Ok(times(15)));
    let text = "[election]\n[times]\nlease_duration = \"7s\"\n";
    assert_eq!(load_times(&[], text), Ok(times(7)));
    let variable = "SETPOINT__TIMES__LEASE_DURATION";
    assert_eq!(load_times(&[(variable, "9s")], text), Ok(times(9)));
    for (env, text, words) in [
        ("9", "", ["times.lease_duration", "duration"]),
        ("0s", "", ["invalid settings", "it must be positive"]),
        (
            "1s",
            "[times]\nlease = 1",
            ["unknown setting", "times.lease"],
        ),
        ("1s", "[nothing]\na = 1", ["unknown setting", "nothing.a"]),
    ] {
        let line = load_times(&[(variable, env)], text).unwrap_err();
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
    }
}

#[test]
fn the_first_rule_that_does_not_hold_is_reported() {
    assert_eq!(first_broken(&[(true, "a"), (true, "b")]), Ok(()));
    let broken = first_broken(&[(true, "a"), (false, "b"), (false, "c")]);
    assert_eq!(broken, Err("b".to_owned()));
}

#[test]
fn the_template_is_a_settings_file_with_every_default_as_a_comment() {
    let template = template::<Demo>("demo", &Times);
    for part in [
        "\n\n# Number of `workers`.\n# workers = 4\n",
        "\n# instance = \"demo-<host name>\"\n",
        "\n[election]\n",
        "\n# endpoints = [\"http://127.0.0.1:2379\"]\n",
        "\n[labels]\n",
        "\n[times]\n\n# Whether to elect a leader.\n# leader_elect = true\n",
    ] {
        assert!(template.contains(part), "{part} is not in\n{template}");
    }
    let times = load_times(&[], &template);
    assert_eq!(times, Ok(Election::default()), "it changes nothing");
    let uncommented = template.replace("# lease_duration = \"15s\"", "lease_duration = \"8s\"");
    let times = load_times(&[], &uncommented).unwrap();
    assert_eq!(times.lease_duration, Duration::from_secs(8));
}

#[test]
fn a_process_has_an_identity_or_is_said_to_have_none() {
    let files = |args: &[&str]| {
        let common = load_demo(args, &[]).unwrap().0;
        common.identity_files()
    };
    let all = [
        "--tls-ca-file=a",
        "--tls-certificate-file=b",
        "--tls-key-file=c",
    ];
    let found = files(&all).unwrap().unwrap();
    assert_eq!(found.key_file, PathBuf::from("c"));
    for own in ["127.0.0.1:0", "127.9.8.7:1", "[::1]:0"] {
        let plain = files(&["--tls-plaintext", "--listen", own]);
        assert!(plain.unwrap().is_none());
    }
    for (setting, others, ip) in [
        ("--listen", "0.0.0.0:0", "0.0.0.0"),
        ("--listen", "10.0.0.1:1", "10.0.0.1"),
        ("--listen", "[::]:0", "::"),
        ("--listen-also", "169.254.0.1", "169.254.0.1"),
    ] {
        let refused = files(&["--tls-plaintext", setting, others]).unwrap_err();
        let why = "with tls.plaintext, listen must be a loopback address, not";
        assert_eq!(refused.to_string(), format!("invalid settings: {why} {ip}"));
        let with_files = [&all[..], &["--tls-plaintext", setting, others]].concat();
        assert!(files(&with_files).unwrap().is_some());
    }
    for missing in [&[][..], &all[..2], &["--tls-plaintext", all[0]]] {
        let error = files(missing).unwrap_err().to_string();
        assert!(
            error.starts_with("invalid settings: tls.ca_file"),
            "{error}"
        );
    }
}
