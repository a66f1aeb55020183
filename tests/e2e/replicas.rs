//! Several gateways side by side: one dies, freezes, lags or is cut off, and its clients go on where they were.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use setpoint_controller::client::ListOptions;
use setpoint_model::Revision;
use setpoint_proto::core::ConfigMap;
use setpoint_tests::{Audience, Cluster, Proxy, Traffic, client, eventually, happened};
use tokio::time::sleep;

fn config_map(name: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.namespace = "default".into();
    object.metadata.name = name.into();
    object
}

/// Creates one, by any of these gateways; when was that?
async fn mark(urls: &str, name: &str) -> Revision {
    let created = client(urls).create(&config_map(name)).await;
    created.expect("a gateway answers").revision
}

/// What a gateway counts under this name, over all labels that `line` lets through.
fn metric(cluster: &Cluster, gateway: usize, name: &str, line: &str) -> f64 {
    let text = cluster.kubectl_at(gateway).ok("get --raw /metrics");
    let counted = text
        .lines()
        .filter(|text| text.starts_with(name) && text.contains(line));
    counted
        .filter_map(|text| text.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

/// Every watcher was told of exactly what happened, each once and in order.
async fn assert_whole(cluster: &Cluster, audience: &Audience, after: Revision, until: Revision) {
    audience.reach(until).await;
    let happened = happened(cluster.etcd_url(), after, until).await;
    for told in audience.told() {
        let told: Vec<_> = told.into_iter().filter(|at| *at > after.raw()).collect();
        assert_eq!(told, happened);
    }
}

/// Checks S1, S2, S3 over several gateways, each of which dies without warning and is stopped in good order, under load.
#[tokio::test(flavor = "multi_thread")]
async fn watchers_miss_nothing_and_hear_nothing_twice_while_gateways_come_and_go() {
    let mut cluster = Cluster::bare_with(2);
    let urls = cluster.gateway_urls();
    let audience = Audience::gather(&urls, 10, 2).await;
    let start = mark(&urls, "start").await;
    let traffic = Traffic::begin(&urls, 4);
    for _ in 0..2 {
        for n in 0..2 {
            let gateway = cluster.process(&format!("gateway-{n}"));
            match n {
                0 => gateway.kill(),
                _ => assert!(gateway.stop(), "it ends in good order"),
            }
            // A little load while one is missing.
            sleep(Duration::from_millis(500)).await;
            gateway.restart();
            cluster.wait_for_gateway(n);
        }
    }
    let sure = traffic.end().await;
    // A machine that is busy with other things does few writes; some of each writer are enough.
    assert!(sure > 20, "only {sure} objects are certain");
    let end = mark(&urls, "end").await;
    assert_whole(&cluster, &audience, start, end).await;
}

/// Checks I3: five hundred watchers move to the other gateway, and none asks for the whole state.
#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_watchers_of_a_killed_gateway_resume_on_the_other_without_a_list() {
    let mut cluster = Cluster::bare_with(2);
    let urls = cluster.gateway_urls();
    for n in 0..20 {
        mark(&urls, &format!("here-{n}")).await;
    }
    let audience = Audience::gather(&urls, 25, 20).await;
    let start = mark(&urls, "start").await;
    let asked = |cluster: &Cluster| {
        metric(cluster, 1, "apiserver_init_events_total", "configmaps")
            + metric(cluster, 1, "apiserver_request_total", "verb=\"LIST\"")
    };
    let before = asked(&cluster);
    cluster.process("gateway-0").kill();
    let end = mark(&urls, "end").await;
    assert_whole(&cluster, &audience, start, end).await;
    eventually("all watch the one that is left", || {
        let open = metric(&cluster, 1, "apiserver_longrunning_requests", "configmaps");
        (open >= 500.0).then_some(()).ok_or(format!("{open}"))
    });
    assert_eq!(asked(&cluster), before);
}

/// Checks S5 with a short pause.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_was_frozen_answers_with_what_happened_meanwhile() {
    freeze(Duration::from_secs(4)).await;
}

/// Checks S5.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "freezes a gateway for half a minute"]
async fn a_gateway_that_was_frozen_for_long_answers_with_what_happened_meanwhile() {
    freeze(Duration::from_secs(30)).await;
}

async fn freeze(pause: Duration) {
    let mut cluster = Cluster::bare_with(2);
    let (frozen, awake) = (cluster.gateway_url_at(0), cluster.gateway_url_at(1));
    let audience = Audience::gather(&frozen, 2, 2).await;
    let start = mark(&awake, "start").await;
    audience.reach(start).await;
    cluster.process("gateway-0").signal(Signal::SIGSTOP);
    let traffic = Traffic::begin(&awake, 2);
    sleep(pause).await;
    traffic.end().await;
    let end = mark(&awake, "end").await;
    // It is asked before it wakes, so that this is the first thing that it does.
    let first = cluster
        .kubectl_at(0)
        .command("get configmap end --request-timeout=60s -o jsonpath={.metadata.resourceVersion}")
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl is installed");
    sleep(Duration::from_millis(500)).await;
    cluster.process("gateway-0").signal(Signal::SIGCONT);
    let read = first.wait_with_output().expect("kubectl ends");
    assert_eq!(String::from_utf8_lossy(&read.stdout), end.to_string());
    assert_whole(&cluster, &audience, start, end).await;
}

/// Checks S7 with real gateways: what one has acknowledged, no other one unsays, however late it hears of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_lags_does_not_show_what_was_deleted_by_another() {
    let mut cluster = Cluster::without_etcd();
    cluster.start_etcd();
    let proxy = Proxy::start(cluster.etcd_url()).await;
    cluster.add_gateway();
    cluster.start_gateway_at(0);
    cluster.start_gateway_over(1, &proxy.url());
    cluster.wait_until_ready();
    let (ahead, behind) = (
        client(&cluster.gateway_url_at(0)),
        client(&cluster.gateway_url_at(1)),
    );
    let created = ahead.create(&config_map("doomed")).await.expect("created");
    let names = async || {
        let listed = behind.list::<ConfigMap>(&ListOptions::default()).await?;
        let names = listed.items.into_iter().map(|object| object.metadata.name);
        Ok::<Vec<_>, setpoint_proto::ApiError>(names.collect())
    };
    assert_eq!(names().await.expect("it follows"), ["doomed"]);
    assert_eq!(
        proxy.connections(),
        2,
        "one for calls, then one for changes"
    );
    proxy.hold(1);
    let key = setpoint_model::Key::of(&created.object.metadata);
    let deleted = ahead.delete::<ConfigMap>(&key, Default::default(), None);
    deleted.await.expect("deleted");
    let refused = names().await.expect_err("it knows that it lags");
    assert_eq!(refused.reason, setpoint_proto::Reason::Timeout);
    assert!(behind.get::<ConfigMap>(&key).await.is_err());
    proxy.release();
    assert!(names().await.expect("it has caught up").is_empty());
}

/// Checks I1: a network that swallows everything is noticed, and the watch goes on where it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_survives_a_network_that_loses_everything_without_a_word() {
    let cluster = Cluster::bare();
    let proxy = Proxy::start(&cluster.gateway_url()).await;
    let audience = Audience::gather(&proxy.url(), 3, 4).await;
    let start = mark(&cluster.gateway_url(), "start").await;
    audience.reach(start).await;
    let initial = || metric(&cluster, 0, "apiserver_init_events_total", "configmaps");
    let before = initial();
    proxy.lose();
    let end = mark(&cluster.gateway_url(), "end").await;
    assert_whole(&cluster, &audience, start, end).await;
    assert_eq!(initial(), before, "nobody began anew");
    eventually("the gateway has forgotten those who are cut off", || {
        let open = metric(&cluster, 0, "apiserver_longrunning_requests", "configmaps");
        (open == 12.0).then_some(()).ok_or(format!("{open}"))
    });
}

/// A gateway without its store is left for one that has it, though its connections are as good as ever.
#[tokio::test(flavor = "multi_thread")]
async fn clients_leave_a_gateway_that_has_lost_its_store() {
    let mut cluster = Cluster::without_etcd();
    cluster.start_etcd();
    let proxy = Proxy::start(cluster.etcd_url()).await;
    cluster.add_gateway();
    cluster.start_gateway_at(0);
    cluster.start_gateway_over(1, &proxy.url());
    cluster.wait_until_ready();
    let urls = cluster.gateway_urls();
    let audience = Audience::gather(&urls, 12, 1).await;
    let start = mark(&urls, "start").await;
    audience.reach(start).await;
    proxy.cut();
    let open = || metric(&cluster, 1, "apiserver_longrunning_requests", "configmaps");
    eventually("nobody watches there any more", || {
        (open() == 0.0).then_some(()).ok_or(format!("{}", open()))
    });
    let end = mark(&cluster.gateway_url_at(0), "end").await;
    assert_whole(&cluster, &audience, start, end).await;
    let unready = cluster.kubectl_at(1).fails("get --raw /readyz");
    assert!(unready.contains("etcd"), "{unready}");
}

/// Nobody holds up a gateway that should stop: not a person who watches, and not a controller.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_watched_stops_at_once() {
    let mut cluster = Cluster::bare_with(2);
    let urls = cluster.gateway_urls();
    let audience = Audience::gather(&urls, 8, 2).await;
    let start = mark(&urls, "start").await;
    let mut person = watch_by_kubectl(&cluster);
    eventually("kubectl watches", || {
        let open = metric(&cluster, 0, "apiserver_longrunning_requests", "secrets");
        (open == 1.0).then_some(()).ok_or(format!("{open}"))
    });
    assert!(cluster.process("gateway-0").stop());
    let log = cluster.process("gateway-0").log();
    assert!(!log.contains("did not end in time"), "{log}");
    let end = mark(&urls, "end").await;
    assert_whole(&cluster, &audience, start, end).await;
    person.kill().expect("kubectl can be killed");
    person.wait().expect("it was ours");
}

/// Checks I2: a client that reads nothing holds up nobody, and is cut off for a reason that is counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stops_reading_is_cut_off_and_the_others_do_not_notice() {
    let mut cluster = Cluster::without_etcd();
    cluster.set_gateway_flags(&["--stall", "4s"]);
    cluster.start_etcd();
    cluster.start_gateway();
    cluster.wait_until_ready();
    let url = cluster.gateway_url();
    let audience = Audience::gather(&url, 1, 2).await;
    let start = mark(&url, "start").await;
    let address = url.trim_start_matches("http://");
    let mut deaf = std::net::TcpStream::connect(address).expect("it listens");
    let request = "GET /api/v1/configmaps?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n";
    deaf.write_all(request.as_bytes()).expect("it is sent");
    let open = || metric(&cluster, 0, "apiserver_longrunning_requests", "configmaps");
    eventually("three watch", || {
        (open() == 3.0).then_some(()).ok_or(format!("{}", open()))
    });
    let writer = client(&url);
    for n in 0..40 {
        // More in all than the buffers on the way can hold.
        let mut large = config_map(&format!("large-{n}"));
        large.data = [("text".to_owned(), "x".repeat(512 << 10))].into();
        writer.create(&large).await.expect("it is taken");
    }
    let end = mark(&url, "end").await;
    assert_whole(&cluster, &audience, start, end).await;
    eventually("it is cut off", || {
        let cut = metric(&cluster, 0, "setpoint_connections_cut_total", "stalled");
        (cut == 1.0 && open() == 2.0)
            .then_some(())
            .ok_or(format!("{cut} cut, {} open", open()))
    });
    drop(deaf);
}

fn watch_by_kubectl(cluster: &Cluster) -> std::process::Child {
    let mut command: Command = cluster.kubectl_at(0).command("get secrets -A -w");
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("kubectl is installed")
}
