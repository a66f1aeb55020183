//! The small parent of a proxy with the back end of user space.
//!
//! ```text
//! parent: sockets that listen, by name ──socketpair──▶ child: the proxy
//! ```
//! The parent opens sockets for its child, keeps them, and starts a child that has ended again, after a wait that
//! grows while children end soon. The new child asks for the same sockets and gets those that are there: connections
//! that came meanwhile wait in them. SIGTERM and SIGINT end the child, and then the parent, with the child's exit
//! code; a child that ends by itself with 0, or with 64 for bad settings, ends the parent too. If the parent dies,
//! the child does.

mod held;
pub mod link;
mod parent;
mod restarts;

use parent::unblock;
pub use parent::{Parent, supervise};

use std::env;
use std::io;
use std::os::fd::AsFd as _;
use std::thread;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};

use super::Sockets;
use link::Link;

/// The variable that says to a child that its stdin is the link to its parent.
const VARIABLE: &str = "SETPOINT_PROXY_SOCKETS";
const STDIN: &str = "stdin";

/// Returns whether this process is the child of a [`Parent`].
fn is_child() -> bool {
    env::var_os(VARIABLE).is_some_and(|value| value == STDIN)
}

/// Prepares this process to be a child, if it is one, which it returns. To be called before there are further threads.
pub fn begin_child() -> bool {
    let is_child = is_child();
    if is_child && let Err(error) = unblock() {
        eprintln!("proxy: signals stay blocked: {error}");
    }
    is_child
}

/// Returns where this process has its sockets from: its parent, if it is the child of one. The process then ends with
/// its parent.
///
/// # Errors
/// If stdin is not the link.
pub fn sockets() -> io::Result<Sockets> {
    if !is_child() {
        return Ok(Sockets::Own);
    }
    let watched = io::stdin().as_fd().try_clone_to_owned()?;
    let link = Link::new(watched.try_clone()?)?;
    thread::Builder::new()
        .name("parent".to_owned())
        .spawn(move || {
            // Without the parent nobody could listen at the addresses again, were this process to keep them.
            let mut hang_up = [PollFd::new(&watched, PollFlags::empty())];
            while let Err(rustix::io::Errno::INTR) | Ok(0) = poll(&mut hang_up, None) {}
            eprintln!("proxy: the parent has ended");
            std::process::exit(1);
        })?;
    Ok(Sockets::Parent(Mutex::new(link)))
}
