//! The parent: one thread, which waits for signals and for messages of its child.

use std::env;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, kill_process, pidfd_open};

use super::held::Held;
use super::link::Link;
use super::restarts::{Restarts, exit_code};
use super::{STDIN, VARIABLE};

/// Runs this program again as the child, with the same arguments, until it is to end. Returns its exit code.
pub fn supervise() -> ExitCode {
    raise_limit();
    let program = env::current_exe();
    let run = program.and_then(|program| {
        let mut arguments = env::args_os();
        let name = arguments.next().unwrap_or_default();
        let arguments: Vec<_> = arguments.collect();
        Parent::new()?.run(|| {
            let mut command = Command::new(&program);
            command.arg0(&name).args(&arguments);
            command
        })
    });
    match run {
        Ok(status) => ExitCode::from(exit_code(status)),
        Err(error) => {
            eprintln!("proxy: the parent failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Raises the limit of open files of this process and of its child as far as it may be: sockets and connections take
/// some.
fn raise_limit() {
    let files = Resource::RLIMIT_NOFILE;
    let raised = getrlimit(files).and_then(|(_, most)| setrlimit(files, most, most));
    if let Err(error) = raised {
        eprintln!("proxy: the limit of open files is not raised: {error}");
    }
}

/// Lets this process, which has no further threads yet, have the signals that wait for its parent there.
///
/// # Errors
/// The system's.
pub fn unblock() -> io::Result<()> {
    Ok(signals().thread_unblock()?)
}

fn signals() -> SigSet {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    signals
}

/// The parent of a child at a time.
pub struct Parent {
    signals: SignalFd,
    held: Held,
    restarts: Restarts,
    is_stopping: bool,
}

/// A child that runs.
struct Running {
    child: Child,
    /// Readable once the child has ended.
    end: OwnedFd,
    link: Link,
    since: Instant,
    /// Whether it may still send messages.
    is_open: bool,
}

impl Parent {
    /// Returns a parent. From now on, signals of this thread wait for it.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Self> {
        let signals = signals();
        signals.thread_block()?;
        Ok(Self {
            signals: SignalFd::with_flags(
                &signals,
                SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
            )?,
            held: Held::default(),
            restarts: Restarts::default(),
            is_stopping: false,
        })
    }

    /// Runs commands until one ends for good. Each has the link as its stdin.
    ///
    /// # Errors
    /// If a command cannot be run, and the system's.
    pub fn run(mut self, command: impl Fn() -> Command) -> io::Result<ExitStatus> {
        loop {
            let mut running = self.start(command())?;
            let status = self.serve(&mut running)?;
            if self.is_stopping {
                return Ok(status);
            }
            let Some(wait) = self.restarts.after(status, running.since.elapsed()) else {
                return Ok(status);
            };
            eprintln!("proxy: the child ended ({status}), and is started again in {wait:?}");
            if self.is_stopped_within(wait)? {
                return Ok(ExitStatus::default());
            }
        }
    }

    fn start(&mut self, mut command: Command) -> io::Result<Running> {
        let (link, other) = Link::pair()?;
        command.stdin(Stdio::from(other)).env(VARIABLE, STDIN);
        self.held.began();
        let child = command.spawn()?;
        Ok(Running {
            end: pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?,
            child,
            link,
            since: Instant::now(),
            is_open: true,
        })
    }

    /// Answers a child until it ends.
    fn serve(&mut self, running: &mut Running) -> io::Result<ExitStatus> {
        loop {
            let [has_signal, has_ended, has_message] = self.wait(running)?;
            if has_message {
                self.answer(running);
            }
            if has_signal && self.is_asked_to_stop()? {
                self.is_stopping = true;
                let _ = kill_process(
                    Pid::from_child(&running.child),
                    rustix::process::Signal::TERM,
                );
            }
            if has_ended {
                return running.child.wait();
            }
        }
    }

    /// Answers one message. After an error there are no further ones: the child gets one too, or ends.
    fn answer(&mut self, running: &mut Running) {
        let answered = match running.link.receive() {
            Ok(Some((message, _))) => self.held.answer(message, &running.link),
            Ok(None) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(error) => Err(error),
        };
        running.is_open = answered.is_ok();
    }

    /// Waits, and returns whether there is a signal, the end of the child, a message.
    fn wait(&self, running: &Running) -> io::Result<[bool; 3]> {
        let mut ready = [
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&running.end, PollFlags::IN),
            PollFd::new(&running.link, PollFlags::IN),
        ];
        // Of a link that is of no use any more, not even its end.
        let count = if running.is_open { 3 } else { 2 };
        poll_all(ready.get_mut(..count).unwrap_or_default(), None)?;
        Ok(ready.map(|one| !one.revents().is_empty()))
    }

    /// Reads all signals, and returns whether there was one: each of them asks to stop.
    fn is_asked_to_stop(&self) -> io::Result<bool> {
        let mut stop = false;
        while self.signals.read_signal()?.is_some() {
            stop = true;
        }
        Ok(stop)
    }

    /// Waits for a time, and returns whether a signal asked to stop meanwhile.
    fn is_stopped_within(&self, time: Duration) -> io::Result<bool> {
        let time = Timespec::try_from(time).ok();
        poll_all(&mut [PollFd::new(&self.signals, PollFlags::IN)], time)?;
        self.is_asked_to_stop()
    }
}

fn poll_all(ready: &mut [PollFd<'_>], time: Option<Timespec>) -> io::Result<()> {
    match poll(ready, time.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
