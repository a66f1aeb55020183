//! Starts a replica.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;
use jiff::Timestamp;
use parking_lot::RwLock;
use setpoint_controller::{Client, Delta, Informer, Replica, View, reachable};
use setpoint_host::Host;
use setpoint_proto::Resource as _;
use setpoint_proto::core::Service;
use tokio::net::{UdpSocket, lookup_host};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::answer::Zone;
use crate::forward::{Forwarder, PORT, ResolvConf};
use crate::records::{Index, NamespaceView, PodView, ServiceView, SliceView};
use crate::registration::Registration;
use crate::server::{Responder, Server};
use crate::settings::Settings;

/// The servers that the process is configured to ask itself.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Runs a replica until shutdown.
///
/// # Errors
/// If the gateway's address is no URI, or the address of DNS cannot be listened on.
pub async fn start(host: Host, settings: Settings) -> anyhow::Result<()> {
    let server = Server::bind(settings.dns_listen, settings.tcp).await?;
    let address = server.address()?;
    let replica = Replica::join(host, &settings.gateway, "dns", Service::RESOURCE)?;
    let advertised = advertised(&settings, &replica.client, address).await;
    let objects = Objects::watch(&replica, &settings);
    let synced = objects.synced();
    replica.ready_when(synced.clone());
    let own = SocketAddr::new(advertised, address.port());
    let (forwarder, search) = forwarder(&settings, &[address, own])?;
    let responder = Responder {
        zone: zone(&settings, advertised)?,
        index: objects.index.clone(),
        synced: synced.clone(),
        serial: objects.serial.clone(),
        forwarder: forwarder.clone(),
        autopath: settings.autopath.then_some(search),
    };
    let (stop, ended) = (replica.host.shutdown(), CancellationToken::new());
    let serving = tokio::spawn(server.run(responder, ended.clone()));
    info!(%address, %advertised, domain = settings.domain, "serving DNS");
    tokio::spawn(async move { forwarder.probe_loops().await });
    if settings.registration.enabled {
        let registration = objects.registration(&replica, &settings, own);
        registration.run(synced, stop.clone()).await;
    }
    stop.cancelled().await;
    sleep(settings.registration.lameduck).await;
    ended.cancel();
    let _ = serving.await;
    replica.leave().await;
    Ok(())
}

/// Returns the address at which Pods reach this replica.
async fn advertised(settings: &Settings, client: &Client, address: SocketAddr) -> IpAddr {
    let set = &settings.registration.advertise_address;
    if let Ok(ip) = set.parse() {
        return ip;
    }
    if let Some(ip) = local_towards(set).await {
        return ip;
    }
    let reached = reachable(client, &address.to_string()).await;
    let reached = reached.parse::<SocketAddr>().unwrap_or(address);
    if settings.registration.enabled && reached.ip().is_loopback() {
        info!("an address of the loopback is no endpoint: this replica is not registered");
    }
    reached.ip()
}

/// Returns the IP from which this process reaches a host; `None` if it has no address. Sends no packet.
async fn local_towards(host: &str) -> Option<IpAddr> {
    let found = lookup_host((host, PORT)).await.ok()?;
    let target = found.into_iter().find(SocketAddr::is_ipv4)?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await.ok()?;
    socket.connect(target).await.ok()?;
    Some(socket.local_addr().ok()?.ip())
}

fn zone(settings: &Settings, advertised: IpAddr) -> anyhow::Result<Zone> {
    Ok(Zone {
        origin: settings.origin().context("the domain is no name")?,
        ttl: settings.ttl,
        pods: settings.pods,
        reverse: settings.reverse().map_err(anyhow::Error::msg)?,
        addresses: vec![advertised],
    })
}

/// Returns the forwarder, and the search path of this process. It never asks the addresses of this replica, or of the
/// Service that leads to it.
fn forwarder(
    settings: &Settings,
    own: &[SocketAddr],
) -> anyhow::Result<(Forwarder, Vec<hickory_proto::rr::Name>)> {
    let text = std::fs::read_to_string(RESOLV_CONF).unwrap_or_default();
    let machine = ResolvConf::parse(&text);
    let configured = settings.forward.servers().map_err(anyhow::Error::msg)?;
    let mut servers = configured.unwrap_or(machine.servers);
    let service = settings.registration.cluster_ip.parse::<IpAddr>().ok();
    let service = service.map(|ip| SocketAddr::new(ip, PORT));
    servers.retain(|server| !own.contains(server) && Some(*server) != service);
    if servers.is_empty() {
        warn!("no upstream servers: names outside of the cluster fail");
    }
    Ok((
        Forwarder::new(servers, settings.forward.clone()),
        machine.search,
    ))
}

/// The objects that answers come from.
struct Objects {
    index: Arc<RwLock<Index>>,
    serial: Arc<AtomicU32>,
    services: Informer<ServiceView>,
    changed: watch::Sender<()>,
    synced: watch::Receiver<bool>,
}

impl Objects {
    /// Watches the objects, for as long as the process runs.
    fn watch(replica: &Replica, settings: &Settings) -> Self {
        let index = Arc::new(RwLock::new(Index::default()));
        let serial = Arc::new(AtomicU32::new(now()));
        let stop = CancellationToken::new();
        let mut complete = Vec::new();
        let (changed, _) = watch::channel(());
        let tell = changed.clone();
        let services = replica.informer::<ServiceView>();
        let namespaces = replica.informer::<NamespaceView>();
        let slices = replica.informer::<SliceView>();
        let apply = Applying {
            index: &index,
            serial: &serial,
        };
        let services = apply
            .by(services, Index::service_changed)
            .on_event(move |_| {
                tell.send_replace(());
            });
        let shared = services.share();
        complete.push(run(services, &stop));
        complete.push(run(apply.by(namespaces, Index::namespace_changed), &stop));
        complete.push(run(apply.by(slices, Index::slice_changed), &stop));
        if settings.needs_pods() {
            let pods = replica.informer::<PodView>();
            complete.push(run(apply.by(pods, Index::pod_changed), &stop));
        }
        let (all, synced) = watch::channel(false);
        tokio::spawn(async move {
            for mut one in complete {
                let _ = one.wait_for(|done| *done).await;
            }
            all.send_replace(true);
            // Kept for readers, who would otherwise see the end of the channel.
            all.closed().await;
        });
        Self {
            index,
            serial,
            services: shared,
            changed,
            synced,
        }
    }

    fn synced(&self) -> watch::Receiver<bool> {
        self.synced.clone()
    }

    fn registration(
        &self,
        replica: &Replica,
        settings: &Settings,
        own: SocketAddr,
    ) -> Registration {
        let registration = Registration::new(
            &replica.client,
            replica.host.instance(),
            (own.ip(), own.port()),
            &settings.registration.cluster_ip,
            self.services.reader(),
        );
        let (mut changes, wake) = (self.changed.subscribe(), registration.changed());
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                wake.notify_one();
            }
        });
        registration
    }
}

/// Applies the changes of informers to the index.
struct Applying<'a> {
    index: &'a Arc<RwLock<Index>>,
    serial: &'a Arc<AtomicU32>,
}

impl Applying<'_> {
    fn by<V: View>(&self, informer: Informer<V>, apply: fn(&mut Index, &Delta<V>)) -> Informer<V> {
        let (index, serial) = (self.index.clone(), self.serial.clone());
        informer.on_event(move |change| {
            apply(&mut index.write(), change);
            serial.store(now(), Ordering::Relaxed);
        })
    }
}

/// Runs an informer, and returns whether it is complete.
fn run<V: View>(informer: Informer<V>, stop: &CancellationToken) -> watch::Receiver<bool> {
    let (done, complete) = watch::channel(false);
    let reader = informer.reader();
    tokio::spawn(informer.run(stop.clone()));
    tokio::spawn(async move {
        reader.synced().await;
        done.send_replace(true);
        done.closed().await;
    });
    complete
}

/// Returns the seconds since 1970. They fit until 2106.
fn now() -> u32 {
    let seconds = Timestamp::now().as_second();
    u32::try_from(seconds).unwrap_or(u32::MAX)
}
