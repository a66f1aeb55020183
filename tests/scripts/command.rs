//! The commands of scripts.

use std::str::FromStr;
use std::time::Duration;

/// The assignments of a command, such as `replicas=3`, in their order.
pub type Fields = Vec<(String, String)>;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `node NAME [FIELD=VALUE …]`: adds a node, whose Pods the kubelet runs.
    Node(String, Fields),
    /// `start PROCESS …`: starts processes. `replicaset-controller-1` is a second replica of `replicaset-controller`.
    Start(Vec<String>),
    /// `create KIND NAME [FIELD=VALUE …]`
    Create(String, String, Fields),
    /// `apply [as MANAGER] KIND NAME [FIELD=VALUE …]`: server-side apply.
    Apply(String, String, String, Fields),
    /// `patch [as MANAGER] KIND NAME FIELD=VALUE …`: a strategic merge patch.
    Patch(String, String, String, Fields),
    /// `replace KIND NAME FIELD=VALUE …`: replaces the version that was remembered, changed.
    Replace(String, String, Fields),
    /// `remember KIND NAME`: reads an object for a later `replace`.
    Remember(String, String),
    /// `delete KIND NAME [propagationPolicy=…]`
    Delete(String, String, Fields),
    /// `container of POD ends with CODE`
    Ended(String, i32),
    /// `pod POD is ready`, `pod POD is not ready`
    Ready(String, bool),
    /// `show KIND [NAME]`
    Show(String, Option<String>),
    /// `stabilize`: runs until nothing was written for three seconds.
    Stabilize,
    /// `wait DURATION`
    Wait(Duration),
    /// `step N`: carries out N writes.
    Step(usize),
    /// `kill PROCESS`, `kill leader of CONTROLLER`
    Kill(Process),
    /// `freeze PROCESS`
    Freeze(Process),
    /// `thaw PROCESS`
    Thaw(Process),
    /// `hold writes of PROCESS`, `release writes of PROCESS`
    Hold(Process, bool),
    /// `delay watch of RESOURCE to PROCESS`
    Lag(String, Process),
    /// `deliver watch of RESOURCE to PROCESS`
    CatchUp(String, Process),
    /// `break watches of PROCESS`, `expire watches of PROCESS`
    Break(Process, bool),
    /// `lose answer to PROCESS`
    Lose(Process),
    /// `crash PROCESS after N writes`
    Crash(Process, usize),
    /// `power off NODE`, `power on NODE`
    Power(String, bool),
}

/// A process of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Process {
    /// By its name.
    Named(String),
    /// The one that holds the Lease of this name.
    LeaderOf(String),
}

impl FromStr for Command {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<_> = text.split_whitespace().collect();
        let own = |word: &&str| (*word).to_owned();
        Ok(match words.as_slice() {
            ["node", name, rest @ ..] => Self::Node(own(name), fields(rest)?),
            ["start", processes @ ..] if !processes.is_empty() => {
                Self::Start(processes.iter().map(own).collect())
            }
            ["create", kind, name, rest @ ..] => Self::Create(own(kind), own(name), fields(rest)?),
            ["apply", "as", manager, kind, name, rest @ ..] => {
                Self::Apply(own(manager), own(kind), own(name), fields(rest)?)
            }
            ["apply", kind, name, rest @ ..] => {
                Self::Apply("user".into(), own(kind), own(name), fields(rest)?)
            }
            ["patch", "as", manager, kind, name, rest @ ..] => {
                Self::Patch(own(manager), own(kind), own(name), fields(rest)?)
            }
            ["patch", kind, name, rest @ ..] => {
                Self::Patch("user".into(), own(kind), own(name), fields(rest)?)
            }
            ["replace", kind, name, rest @ ..] => {
                Self::Replace(own(kind), own(name), fields(rest)?)
            }
            ["remember", kind, name] => Self::Remember(own(kind), own(name)),
            ["delete", kind, name, rest @ ..] => Self::Delete(own(kind), own(name), fields(rest)?),
            ["container", "of", pod, "ends", "with", code] => Self::Ended(own(pod), number(code)?),
            ["pod", pod, "is", "ready"] => Self::Ready(own(pod), true),
            ["pod", pod, "is", "not", "ready"] => Self::Ready(own(pod), false),
            ["show", kind] => Self::Show(own(kind), None),
            ["show", kind, name] => Self::Show(own(kind), Some(own(name))),
            ["stabilize"] => Self::Stabilize,
            ["wait", time] => Self::Wait(duration(time)?),
            ["step", count] => Self::Step(number(count)?),
            ["kill", rest @ ..] => Self::Kill(process(rest)?),
            ["freeze", rest @ ..] => Self::Freeze(process(rest)?),
            ["thaw", rest @ ..] => Self::Thaw(process(rest)?),
            ["hold", "writes", "of", rest @ ..] => Self::Hold(process(rest)?, true),
            ["release", "writes", "of", rest @ ..] => Self::Hold(process(rest)?, false),
            ["delay", "watch", "of", resource, "to", rest @ ..] => {
                Self::Lag(own(resource), process(rest)?)
            }
            ["deliver", "watch", "of", resource, "to", rest @ ..] => {
                Self::CatchUp(own(resource), process(rest)?)
            }
            ["break", "watches", "of", rest @ ..] => Self::Break(process(rest)?, false),
            ["expire", "watches", "of", rest @ ..] => Self::Break(process(rest)?, true),
            ["lose", "answer", "to", rest @ ..] => Self::Lose(process(rest)?),
            ["crash", rest @ .., "after", count, "write" | "writes"] => {
                Self::Crash(process(rest)?, number(count)?)
            }
            ["power", "off", node] => Self::Power(own(node), false),
            ["power", "on", node] => Self::Power(own(node), true),
            _ => return Err("unknown command".into()),
        })
    }
}

fn process(words: &[&str]) -> Result<Process, String> {
    match words {
        [name] => Ok(Process::Named((*name).to_owned())),
        ["leader", "of", controller] => Ok(Process::LeaderOf((*controller).to_owned())),
        _ => Err("expected a process, or `leader of` a controller".into()),
    }
}

fn fields(words: &[&str]) -> Result<Fields, String> {
    let field = |word: &&str| {
        let (name, value) = word.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    let fields = words
        .iter()
        .map(|word| field(word).ok_or_else(|| format!("not FIELD=VALUE: {word}")));
    fields.collect()
}

fn number<T: FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("not a number: {word}"))
}

fn duration(word: &str) -> Result<Duration, String> {
    let time: jiff::SignedDuration = word
        .parse()
        .map_err(|_| format!("not a duration: {word}"))?;
    Duration::try_from(time).map_err(|_| format!("not a duration: {word}"))
}
