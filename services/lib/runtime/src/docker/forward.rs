//! The program of a container that forwards a port: the subcommand `forward <tcp|udp> <port> <ip>:<port>`.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::{set_socket_keepalive, set_socket_linger};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

/// The largest number of connections, or of clients of UDP. Further connections wait; further clients are not heard.
const MAX: usize = 1024;
/// The time to connect to the target.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time after which a client of UDP is forgotten that neither sends nor receives.
const FLOW_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of datagrams of a client that wait; more are dropped.
const WAITING: usize = 64;
/// The largest datagram.
const DATAGRAM: usize = 65_535;
/// The wait after the system has refused to accept a connection, as without free descriptors.
const REFUSED: Duration = Duration::from_millis(100);
/// `EX_USAGE` of sysexits.h.
const USAGE: u8 = 64;

/// Forwards a port of all addresses of this machine until the process ends.
pub fn main(protocol: &str, port: &str, target: &str) -> ExitCode {
    let parsed = (port.parse::<u16>(), target.parse::<SocketAddrV4>());
    let (Ok(port), Ok(target)) = parsed else {
        eprintln!("usage: node-agent forward <tcp|udp> <port> <ip>:<port>");
        return ExitCode::from(USAGE);
    };
    match run(protocol, port, target) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot forward port {port}: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run(protocol: &str, port: u16, target: SocketAddrV4) -> io::Result<()> {
    let own = (Ipv4Addr::UNSPECIFIED, port);
    match protocol {
        "udp" => udp(UdpSocket::bind(own).await?, target).await,
        _ => tcp(TcpListener::bind(own).await?, target).await,
    }
    Ok(())
}

async fn tcp(listener: TcpListener, target: SocketAddrV4) {
    let free = Arc::new(Semaphore::new(MAX));
    while let Ok(place) = Arc::clone(&free).acquire_owned().await {
        match listener.accept().await {
            Ok((client, _)) => {
                _ = tokio::spawn(async move {
                    // Either end may leave at any time.
                    let _ = connection(client, target).await;
                    drop(place);
                })
            }
            Err(_) => sleep(REFUSED).await,
        }
    }
}

/// Forwards a connection in both directions until both have ended. The client of one that is not made gets a reset.
async fn connection(mut client: TcpStream, target: SocketAddrV4) -> io::Result<()> {
    let server = timeout(CONNECT_TIMEOUT, TcpStream::connect(target)).await;
    let mut server = match server.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(server) => server,
        Err(error) => {
            set_socket_linger(&client, Some(Duration::ZERO))?;
            return Err(error);
        }
    };
    for end in [&client, &server] {
        end.set_nodelay(true)?;
        // An end that is gone without a word is noticed.
        set_socket_keepalive(end, true)?;
    }
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

async fn udp(front: UdpSocket, target: SocketAddrV4) {
    let front = Arc::new(front);
    let mut flows = HashMap::<SocketAddr, mpsc::Sender<Vec<u8>>>::new();
    let mut buffer = vec![0; DATAGRAM];
    loop {
        let Ok((length, client)) = front.recv_from(&mut buffer).await else {
            sleep(REFUSED).await;
            continue;
        };
        if flows.len() >= MAX {
            flows.retain(|_, flow| !flow.is_closed());
        }
        let known = flows.get(&client).filter(|flow| !flow.is_closed()).cloned();
        let flow = match known {
            Some(flow) => flow,
            None if flows.len() >= MAX => continue,
            None => {
                let (flow, datagrams) = mpsc::channel(WAITING);
                tokio::spawn(answer(Arc::clone(&front), client, target, datagrams));
                flows.insert(client, flow.clone());
                flow
            }
        };
        // A network may drop datagrams.
        let _ = flow.try_send(buffer[..length].to_vec());
    }
}

/// Sends the datagrams of a client on, and the answers back, until neither has come for a while.
async fn answer(
    front: Arc<UdpSocket>,
    client: SocketAddr,
    target: SocketAddrV4,
    mut datagrams: mpsc::Receiver<Vec<u8>>,
) {
    let connected = async {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
        socket.connect(target).await.map(|()| socket)
    };
    let Ok(socket) = connected.await else { return };
    let mut buffer = vec![0; DATAGRAM];
    loop {
        tokio::select! {
            datagram = datagrams.recv() => match datagram {
                Some(datagram) => _ = socket.send(&datagram).await,
                None => return,
            },
            answer = socket.recv(&mut buffer) => match answer {
                Ok(length) => _ = front.send_to(&buffer[..length], client).await,
                // Nobody listens there. The next datagram tries again.
                Err(_) => return,
            },
            () = sleep(FLOW_TIMEOUT) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn v4(address: SocketAddr) -> SocketAddrV4 {
        match address {
            SocketAddr::V4(address) => address,
            SocketAddr::V6(_) => unreachable!("it is bound to IPv4"),
        }
    }

    #[tokio::test]
    async fn a_connection_is_forwarded_with_both_of_its_ends() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (target, address) = (
            v4(server.local_addr().unwrap()),
            front.local_addr().unwrap(),
        );
        tokio::spawn(tcp(front, target));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let (mut accepted, _) = server.accept().await.unwrap();
        let mut question = String::new();
        accepted.read_to_string(&mut question).await.unwrap();
        accepted.write_all(b"answer").await.unwrap();
        drop(accepted);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!((question.as_str(), answer.as_str()), ("question", "answer"));
    }

    #[tokio::test]
    async fn a_connection_that_the_target_refuses_is_reset() {
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = v4(gone.local_addr().unwrap());
        drop(gone);
        let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = front.local_addr().unwrap();
        tokio::spawn(tcp(front, target));
        let mut client = TcpStream::connect(address).await.unwrap();
        let read = client.read(&mut [0]).await;
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn each_client_of_udp_gets_its_own_answers() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (target, address) = (
            v4(server.local_addr().unwrap()),
            front.local_addr().unwrap(),
        );
        tokio::spawn(udp(front, target));
        let mut clients = Vec::new();
        for question in ["a", "b"] {
            let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            client.send_to(question.as_bytes(), address).await.unwrap();
            clients.push((client, question));
        }
        let mut buffer = [0; 16];
        for _ in 0..2 {
            let (length, from) = server.recv_from(&mut buffer).await.unwrap();
            server.send_to(&buffer[..length], from).await.unwrap();
        }
        for (client, question) in clients {
            let length = client.recv(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..length], question.as_bytes());
        }
    }
}
