//! A port of a Pod that kubectl forwards.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

/// `kubectl port-forward`, which is killed when this is dropped.
pub struct Forward {
    child: Child,
    port: u16,
    /// kubectl ends when it cannot write, so the pipe stays open.
    _output: BufReader<ChildStdout>,
}

impl Forward {
    /// Runs the command, and waits until it listens.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("kubectl is installed");
        let mut output = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("kubectl writes");
        let local = line
            .split(" -> ")
            .next()
            .and_then(|from| from.rsplit(':').next());
        Self {
            port: local.and_then(|port| port.parse().ok()).expect(&line),
            child,
            _output: output,
        }
    }

    /// Sends a GET request in a connection of its own, and returns the answer.
    pub fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("kubectl listens");
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it is sent");
        let mut response = String::new();
        stream
            .read_to_string(&mut response)
            .expect("it is answered");
        response
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
