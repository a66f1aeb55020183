//! A front: its socket, and the task that serves it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tracing::warn;

use super::route::Route;
use super::{Listen, Shared, tcp, udp};
use crate::Protocol;
use crate::report::reason;

/// The first and the longest wait until a socket is tried again that could not be opened.
const RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// A front that is served while this exists.
pub struct Front {
    listen: Listen,
    route: watch::Sender<Arc<Route>>,
    task: JoinHandle<()>,
    shared: Arc<Shared>,
}

impl Front {
    /// Opens a front. If its socket cannot be opened, that is reported and tried again.
    pub fn open(listen: Listen, route: Route, shared: &Arc<Shared>) -> Self {
        let (sender, receiver) = watch::channel(Arc::new(route));
        let opened = shared.sockets.open(listen);
        shared.fronts.write().insert(listen);
        Self {
            task: tokio::spawn(serve(listen, opened, receiver, Arc::clone(shared))),
            listen,
            route: sender,
            shared: Arc::clone(shared),
        }
    }

    /// Changes the way of new connections. The socket stays.
    pub fn reroute(&self, route: Route) {
        self.route.send_replace(Arc::new(route));
    }

    /// Closes the socket; connections that are open stay.
    pub async fn close(mut self) {
        self.task.abort();
        // When it has ended, its copy of the socket is closed, and the address is free.
        let _ = (&mut self.task).await;
        if let Err(error) = self.shared.sockets.close(self.listen) {
            warn!(%error, socket = %self.listen, "the parent has not closed a socket");
        }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.shared.fronts.write().remove(&self.listen);
        self.task.abort();
    }
}

async fn serve(
    listen: Listen,
    opened: io::Result<OwnedFd>,
    route: watch::Receiver<Arc<Route>>,
    shared: Arc<Shared>,
) {
    let opened = match opened {
        Ok(socket) => Ok(socket),
        Err(error) => retry(listen, error, &route, &shared).await,
    };
    let Ok(socket) = opened else { return };
    if let Err(error) = forward(listen, socket, route, shared).await {
        warn!(%error, socket = %listen, "a socket is not served");
    }
}

async fn forward(
    listen: Listen,
    socket: OwnedFd,
    route: watch::Receiver<Arc<Route>>,
    shared: Arc<Shared>,
) -> io::Result<()> {
    match listen.protocol {
        Protocol::Udp => {
            let socket = UdpSocket::from_std(socket.into())?;
            udp::serve(socket, route, shared).await;
        }
        _ => {
            let listener = TcpListener::from_std(socket.into())?;
            tcp::serve(listener, route, shared).await;
        }
    }
    Ok(())
}

/// Opens a socket after waits that grow.
///
/// # Errors
/// If it never can be.
async fn retry(
    listen: Listen,
    mut error: io::Error,
    route: &watch::Receiver<Arc<Route>>,
    shared: &Shared,
) -> io::Result<OwnedFd> {
    let mut wait = RETRY[0];
    loop {
        let port = route.borrow().port().cloned();
        let (at, protocol) = (listen.at, listen.protocol.name().to_uppercase());
        let message = format!("cannot listen on {at} ({protocol}): {}", reason(&error));
        warn!(message, "a port of a Service carries no traffic");
        if let Some(port) = port {
            (shared.report)(&port.service, message);
        }
        if error.kind() == io::ErrorKind::Unsupported {
            return Err(error);
        }
        sleep(wait).await;
        wait = wait.saturating_mul(2).min(RETRY[1]);
        match shared.sockets.open(listen) {
            Ok(socket) => return Ok(socket),
            Err(again) => error = again,
        }
    }
}
