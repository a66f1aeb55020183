//! The subcommands that the runtimes run of their own program: shims of containers, and helpers in pause containers.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::docker::{disk, forward, helper};
use crate::process::{confine, exec_shim, shim};

/// Runs the subcommand in `args`: `shim <folder>`, `confine <folder>`, `confine <folder> <tty|plain> <command>…`,
/// `exec <folder> <agent> <tty|plain> <command>…`, `pause`, `dial <ip> <port>`,
/// `forward <tcp|udp> <port> <ip>:<port>`,
/// `publish <folder> <version>`, `overwrite <file>`, or `measure <folder>…`. Returns `None` if there is none.
///
/// It must be called before any thread exists: a shim stays one small process without an async runtime.
pub fn run(args: &[OsString]) -> Option<ExitCode> {
    match args {
        [name, folder] if name == "shim" => Some(shim::main(Path::new(folder))),
        [name, folder] if name == "confine" => Some(confine::main(Path::new(folder))),
        [name, folder, terminal, command @ ..] if name == "confine" => {
            Some(confine::exec(Path::new(folder), terminal == "tty", command))
        }
        [name, folder, agent, terminal, command @ ..] if name == "exec" => {
            let agent = agent.to_str().unwrap_or_default();
            let (folder, tty) = (Path::new(folder), terminal == "tty");
            Some(exec_shim::main(folder, agent, tty, command))
        }
        [name, ip, port] if name == "dial" => Some(helper::dial(ip.to_str()?, port.to_str()?)),
        [name, protocol, port, target] if name == "forward" => Some(forward::main(
            protocol.to_str()?,
            port.to_str()?,
            target.to_str()?,
        )),
        [name, folder, version] if name == "publish" => {
            Some(helper::publish(folder.to_str()?, version.to_str()?))
        }
        [name, file] if name == "overwrite" => Some(helper::overwrite(Path::new(file))),
        [name, folders @ ..] if name == "measure" => {
            Some(disk::measure(folders.iter().map(Path::new)))
        }
        [name] if name == "pause" => Some(shim::pause()),
        _ => None,
    }
}
