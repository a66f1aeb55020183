//! Several gateways: one is killed, frozen, delayed or cut off, and its clients resume at their last revision.

use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use setpoint_controller::client::ListOptions;
use setpoint_model::Revision;
use setpoint_proto::core::ConfigMap;
use setpoint_tests::{
    Address, Cluster, Link, Watchers, Writers, client, config_map_revisions, eventually,
};
use tokio::io::AsyncWriteExt as _;
use tokio::time::sleep;

fn config_map(name: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.namespace = "default".into();
    object.metadata.name = name.into();
    object
}

/// Creates a ConfigMap through any of these gateways, and returns its revision.
async fn mark(gateways: &Address, name: &str) -> Revision {
    let created = client(gateways).create(&config_map(name)).await;
    created.expect("a gateway responds").revision
}

/// Returns the sum of a gateway's metric over all series that contain `line`.
fn metric(cluster: &Cluster, gateway: usize, name: &str, line: &str) -> f64 {
    let text = cluster.kubectl_at(gateway).ok("get --raw /metrics");
    let counted = text
        .lines()
        .filter(|text| text.starts_with(name) && text.contains(line));
    counted
        .filter_map(|text| text.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

/// Asserts that every watcher has received exactly the changes in etcd, each once and in order.
async fn assert_complete(cluster: &Cluster, watchers: &Watchers, after: Revision, until: Revision) {
    watchers.wait_for(until).await;
    let expected = config_map_revisions(&cluster.etcd_url(), after, until).await;
    for received in watchers.received() {
        let received: Vec<_> = received
            .into_iter()
            .filter(|at| *at > after.raw())
            .collect();
        assert_eq!(received, expected);
    }
}

/// Checks S1, S2, S3 with several gateways under load, each of which is killed once and stopped once.
#[tokio::test(flavor = "multi_thread")]
async fn watchers_receive_every_change_once_while_gateways_are_killed_and_restarted() {
    let mut cluster = Cluster::bare_with(2);
    let urls = cluster.gateway_urls();
    let watchers = Watchers::start(&urls, 10, 2).await;
    let start = mark(&urls, "start").await;
    let writers = Writers::start(&urls, 4);
    for _ in 0..2 {
        for n in 0..2 {
            let gateway = cluster.process(&format!("gateway-{n}"));
            match n {
                0 => gateway.kill(),
                _ => assert!(gateway.stop(), "it exits without an error"),
            }
            // Some load while one gateway is missing.
            sleep(Duration::from_millis(500)).await;
            gateway.restart();
            cluster.wait_for_gateway(n);
        }
    }
    let sure = writers.stop_and_verify().await;
    // A busy machine does few writes; some of each writer are enough.
    assert!(sure > 20, "only {sure} objects are certain");
    let end = mark(&urls, "end").await;
    assert_complete(&cluster, &watchers, start, end).await;
}

/// Checks I3: five hundred watchers move to the other gateway, and none lists again.
#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_watchers_of_a_killed_gateway_resume_on_the_other_without_a_list() {
    let mut cluster = Cluster::bare_with(2);
    let urls = cluster.gateway_urls();
    for n in 0..20 {
        mark(&urls, &format!("here-{n}")).await;
    }
    let watchers = Watchers::start(&urls, 25, 20).await;
    let start = mark(&urls, "start").await;
    let asked = |cluster: &Cluster| {
        metric(cluster, 1, "apiserver_init_events_total", "configmaps")
            + metric(cluster, 1, "apiserver_request_total", "verb=\"LIST\"")
    };
    let before = asked(&cluster);
    cluster.process("gateway-0").kill();
    let end = mark(&urls, "end").await;
    assert_complete(&cluster, &watchers, start, end).await;
    eventually("all watch the remaining gateway", || {
        let open = metric(&cluster, 1, "apiserver_longrunning_requests", "configmaps");
        (open >= 500.0).then_some(()).ok_or(format!("{open}"))
    });
    assert_eq!(asked(&cluster), before);
}

/// Checks S5 with a short pause.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_returns_the_newest_state_after_a_freeze() {
    freeze(Duration::from_secs(4)).await;
}

/// Checks S5.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "freezes a gateway for half a minute"]
async fn a_gateway_returns_the_newest_state_after_a_long_freeze() {
    freeze(Duration::from_secs(30)).await;
}

async fn freeze(pause: Duration) {
    let mut cluster = Cluster::bare_with(2);
    let (frozen, awake) = (cluster.gateway_url_at(0), cluster.gateway_url_at(1));
    let watchers = Watchers::start(&frozen, 2, 2).await;
    let start = mark(&awake, "start").await;
    watchers.wait_for(start).await;
    cluster.process("gateway-0").signal(Signal::SIGSTOP);
    let writers = Writers::start(&awake, 2);
    sleep(pause).await;
    writers.stop_and_verify().await;
    let end = mark(&awake, "end").await;
    // The request is sent before the gateway continues, so that it is handled first.
    let first = cluster
        .kubectl_at(0)
        .command("get configmap end --request-timeout=60s -o jsonpath={.metadata.resourceVersion}")
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl is installed");
    sleep(Duration::from_millis(500)).await;
    cluster.process("gateway-0").signal(Signal::SIGCONT);
    let read = first.wait_with_output().expect("kubectl exits");
    assert_eq!(String::from_utf8_lossy(&read.stdout), end.to_string());
    assert_complete(&cluster, &watchers, start, end).await;
}

/// Checks S7 and DG10 with real gateways: a gateway whose watch lags does not return an older state than another has
/// acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_whose_watch_lags_does_not_return_an_object_that_another_gateway_deleted() {
    let mut cluster = Cluster::without_etcd();
    cluster.start_etcd();
    let link = Link::to(&cluster.etcd_url());
    cluster.add_gateway();
    cluster.start_gateway_at(0);
    cluster.start_gateway_over(1, &link.url());
    cluster.wait_until_ready();
    let (ahead, behind) = (
        client(&cluster.gateway_url_at(0)),
        client(&cluster.gateway_url_at(1)),
    );
    let created = ahead.create(&config_map("doomed")).await.expect("created");
    let names = async || {
        let listed = behind.list::<ConfigMap>(&ListOptions::default()).await?;
        let metadata = listed.items.into_iter().map(|object| object.metadata);
        // The gateways keep others in kube-system.
        let users = metadata.filter(|metadata| metadata.namespace == "default");
        Ok::<Vec<_>, setpoint_proto::ApiError>(users.map(|metadata| metadata.name).collect())
    };
    assert_eq!(names().await.expect("the gateway responds"), ["doomed"]);
    assert_eq!(
        link.connections(),
        2,
        "first the connection for calls, then the one for the watch"
    );
    link.hold_connection(1);
    let key = setpoint_model::Key::of(&created.object().unwrap().metadata);
    let deleted = ahead.delete::<ConfigMap>(&key, Default::default(), None);
    deleted.await.expect("deleted");
    // It knows that it lags, and reads from etcd.
    assert!(names().await.expect("the gateway responds").is_empty());
    let missing = behind.get::<ConfigMap>(&key).await.unwrap_err();
    assert_eq!(missing.reason, setpoint_proto::Reason::NotFound);
    link.release();
    assert!(names().await.expect("the gateway has caught up").is_empty());
}

/// Checks I1: a watch detects a network that loses all bytes, and resumes at its last revision.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_resumes_after_a_network_that_silently_drops_all_bytes() {
    let cluster = Cluster::bare();
    let link = Link::to(&cluster.gateway_url());
    let watchers = Watchers::start(&cluster.gateway_url().at(link.url()), 3, 4).await;
    let start = mark(&cluster.gateway_url(), "start").await;
    watchers.wait_for(start).await;
    let initial = || metric(&cluster, 0, "apiserver_init_events_total", "configmaps");
    let before = initial();
    link.lose_open_connections();
    let end = mark(&cluster.gateway_url(), "end").await;
    assert_complete(&cluster, &watchers, start, end).await;
    assert_eq!(initial(), before, "no watcher listed again");
    eventually("the gateway has closed the lost watches", || {
        let open = metric(&cluster, 0, "apiserver_longrunning_requests", "configmaps");
        (open == 12.0).then_some(()).ok_or(format!("{open}"))
    });
}

/// Clients move from a gateway without its store to another one, although their connections are intact.
#[tokio::test(flavor = "multi_thread")]
async fn clients_fail_over_from_a_gateway_that_has_lost_its_store() {
    let mut cluster = Cluster::without_etcd();
    cluster.start_etcd();
    let link = Link::to(&cluster.etcd_url());
    cluster.add_gateway();
    cluster.start_gateway_at(0);
    cluster.start_gateway_over(1, &link.url());
    cluster.wait_until_ready();
    let urls = cluster.gateway_urls();
    let watchers = Watchers::start(&urls, 12, 1).await;
    let start = mark(&urls, "start").await;
    watchers.wait_for(start).await;
    link.cut();
    let open = || metric(&cluster, 1, "apiserver_longrunning_requests", "configmaps");
    eventually("the gateway has no watchers", || {
        (open() == 0.0).then_some(()).ok_or(format!("{}", open()))
    });
    let end = mark(&cluster.gateway_url_at(0), "end").await;
    assert_complete(&cluster, &watchers, start, end).await;
    let unready = cluster.kubectl_at(1).fails("get --raw /readyz");
    assert!(unready.contains("etcd"), "{unready}");
}

/// Neither `kubectl get -w` nor a controller delays the shutdown of a gateway.
#[tokio::test(flavor = "multi_thread")]
async fn open_watches_do_not_delay_the_shutdown_of_a_gateway() {
    let mut cluster = Cluster::bare_with(2);
    let urls = cluster.gateway_urls();
    let watchers = Watchers::start(&urls, 8, 2).await;
    let start = mark(&urls, "start").await;
    let mut person = watch_by_kubectl(&cluster);
    eventually("kubectl watches", || {
        let open = metric(&cluster, 0, "apiserver_longrunning_requests", "secrets");
        (open == 1.0).then_some(()).ok_or(format!("{open}"))
    });
    assert!(cluster.process("gateway-0").stop());
    let log = cluster.log("gateway-0");
    assert!(!log.contains("did not end in time"), "{log}");
    let end = mark(&urls, "end").await;
    assert_complete(&cluster, &watchers, start, end).await;
    person.kill().expect("kubectl can be killed");
    person.wait().expect("kubectl is a child of the test");
}

/// Checks I2: a client that does not read does not delay others, and is disconnected with a counted reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stops_reading_is_disconnected_without_delaying_others() {
    let mut cluster = Cluster::without_etcd();
    cluster.set_gateway_flags(&["--stall", "4s"]);
    cluster.start_etcd();
    cluster.start_gateway();
    cluster.wait_until_ready();
    let url = cluster.gateway_url();
    let watchers = Watchers::start(&url, 1, 2).await;
    let start = mark(&url, "start").await;
    let mut stalled = url.connect().await.expect("the gateway listens");
    let request = "GET /api/v1/configmaps?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let sent = stalled.write_all(request.as_bytes()).await;
    sent.expect("the request is sent");
    let open = || metric(&cluster, 0, "apiserver_longrunning_requests", "configmaps");
    eventually("three watches are open", || {
        (open() == 3.0).then_some(()).ok_or(format!("{}", open()))
    });
    let writer = client(&url);
    for n in 0..40 {
        // More than all buffers on the way can hold.
        let mut large = config_map(&format!("large-{n}"));
        large.data = [("text".to_owned(), "x".repeat(512 << 10))].into();
        writer.create(&large).await.expect("the write succeeds");
    }
    let end = mark(&url, "end").await;
    assert_complete(&cluster, &watchers, start, end).await;
    eventually("the client is disconnected", || {
        let cut = metric(&cluster, 0, "setpoint_connections_cut_total", "stalled");
        (cut == 1.0 && open() == 2.0)
            .then_some(())
            .ok_or(format!("{cut} cut, {} open", open()))
    });
    drop(stalled);
}

fn watch_by_kubectl(cluster: &Cluster) -> std::process::Child {
    let mut command: Command = cluster.kubectl_at(0).command("get secrets -A -w");
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("kubectl is installed")
}
