use std::pin::pin;

use futures::{StreamExt as _, poll, stream};
use setpoint_codec::kinds;
use setpoint_proto::Reason;
use setpoint_store::Memory;
use setpoint_store::cache::Settings;

use super::*;
use crate::request::{Query, Resource};

fn cache() -> Cache {
    Cache::start(Arc::new(Memory::default()), Settings::default())
}

fn user(name: &str, groups: &[&str]) -> Identity {
    let groups = groups.iter().chain(&["system:authenticated"]);
    Identity {
        name: name.into(),
        groups: groups.map(ToString::to_string).collect(),
        ..Identity::default()
    }
}

fn about(verb: &'static str, group: &str, resource: &str, namespace: &str) -> Arc<Attributes> {
    let resource = Resource {
        group: group.into(),
        version: "v1".into(),
        resource: resource.into(),
        namespace: namespace.into(),
        ..Resource::default()
    };
    Arc::new(Attributes::of_resource(verb, resource))
}

fn pods(verb: &'static str) -> Arc<Attributes> {
    about(verb, "", "pods", "a")
}

/// Returns a control with these seats for the level `global-default`, and one for `catch-all`. A queue has one place.
fn control(seats: usize) -> FlowControl {
    let control = FlowControl::new(seats + 1, 0);
    let mut levels: Vec<_> = flowcontrol::levels().collect();
    levels
        .retain(|level| ["exempt", "catch-all", "global-default"].contains(&&*level.metadata.name));
    for level in &mut levels {
        let limited = level.spec.limited.as_mut();
        if let Some(limited) = limited {
            let queuing = &mut limited.limit_response.queuing;
            let shares = if queuing.is_some() { seats } else { 1 };
            limited.nominal_concurrency_shares = i32::try_from(shares).ok();
            limited.lendable_percent = Some(0);
            if let Some(queuing) = queuing {
                (queuing.queue_length_limit, queuing.hand_size) = (1, 1);
            }
        }
    }
    let (_, mandatory) = flowcontrol::mandatory();
    let mut schemas: Vec<_> = flowcontrol::schemas().collect();
    schemas.retain(|schema| schema.metadata.name == "global-default");
    control.apply(levels, schemas.into_iter().chain(mandatory).collect());
    control
}

async fn enter(control: &FlowControl, cache: &Cache, name: &str) -> Result<Admission, ApiError> {
    take(control, cache, &user(name, &[]), "get").await
}

async fn take(
    control: &FlowControl,
    cache: &Cache,
    user: &Identity,
    verb: &'static str,
) -> Result<Admission, ApiError> {
    let (asked, reading) = (pods(verb), Reading::default());
    let entered = control.enter(cache, user, &asked, reading, None);
    let (admission, entered) = entered.await;
    entered.map(|()| admission)
}

fn level(control: &FlowControl, name: &str) -> Arc<Level> {
    control.active().levels[name].clone()
}

fn seats(control: &FlowControl, name: &str) -> (usize, usize) {
    match &level(control, name).kind {
        level::Kind::Exempt(exempt) => (exempt.executing(), 0),
        level::Kind::Limited(limited) => limited.read(|set| (set.seats(), set.waiting())),
    }
}

/// Checks DG23: the level is that of the user and of what it asks for.
#[test]
fn who_asks_and_what_for_choose_the_level() {
    let control = FlowControl::default();
    let leases = |verb, namespace| about(verb, "coordination.k8s.io", "leases", namespace);
    let controller = user("system:setpoint:scheduler", &["system:setpoint"]);
    let node = user("system:node:a", &["system:nodes"]);
    let simulated = user(
        "system:setpoint:simulated-nodes:a",
        &["system:setpoint:simulated-nodes"],
    );
    let jane = user("jane", &[]);
    let account = user(
        "system:serviceaccount:kube-system:dns",
        &["system:serviceaccounts"],
    );
    let other = user(
        "system:serviceaccount:default:web",
        &["system:serviceaccounts"],
    );
    let admin = user("admin", &["system:masters"]);
    let health = Arc::new(Attributes::of_path("get", "/livez/etcd"));
    for (user, asked, expected) in [
        (
            &controller,
            leases("update", "setpoint-system"),
            "leader-election",
        ),
        (&controller, pods("create"), "workload-high"),
        (&node, leases("update", "kube-node-lease"), "node-high"),
        (&node, about("patch", "", "nodes", ""), "node-high"),
        (&node, pods("get"), "system"),
        (&simulated, leases("update", "kube-node-lease"), "node-high"),
        (&simulated, pods("list"), "system"),
        (&account, pods("get"), "workload-high"),
        (&account, leases("update", "a"), "leader-election"),
        (&other, pods("get"), "workload-low"),
        (&other, leases("update", "a"), "workload-low"),
        (&jane, leases("update", "kube-node-lease"), "global-default"),
        (&jane, health.clone(), "exempt"),
        (&admin, pods("delete"), "exempt"),
    ] {
        let schema = control.classify(&digest(user, &asked)).unwrap();
        assert_eq!(schema.level.name(), expected, "{} {asked:?}", user.name);
    }
    let nobody = Identity::default();
    let schema = control.classify(&digest(&nobody, &health)).unwrap();
    assert_eq!(
        schema.name, "catch-all",
        "of a request that no schema is for"
    );
}

#[tokio::test]
async fn requests_wait_for_a_seat_and_pass_it_on() {
    let (control, cache) = (control(1), cache());
    let first = enter(&control, &cache, "jane").await.unwrap();
    let mut second = pin!(enter(&control, &cache, "joe"));
    assert!(poll!(&mut second).is_pending());
    assert_eq!(seats(&control, "global-default"), (1, 1));
    drop(first);
    let second = second.await.unwrap();
    assert_eq!(seats(&control, "global-default"), (1, 0));
    drop(second);
    assert_eq!(seats(&control, "global-default"), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_is_rejected_when_its_queue_is_full_or_its_wait_times_out() {
    let (control, cache) = (control(1), cache());
    let busy = enter(&control, &cache, "jane").await.unwrap();
    let mut waiting = pin!(enter(&control, &cache, "jane"));
    assert!(poll!(&mut waiting).is_pending());
    for rejected in [enter(&control, &cache, "jane").await, waiting.await] {
        let error = rejected.unwrap_err();
        assert_eq!(error.reason, Reason::TooManyRequests);
        assert_eq!(error.message, "Too many requests, please try again later.");
        assert_eq!(error.details.unwrap().retry_after_seconds, 1);
    }
    assert_eq!(seats(&control, "global-default"), (1, 0));
    drop(busy);
    assert_eq!(seats(&control, "global-default"), (0, 0));
}

/// Checks DG23: clients that try again at once are answered twice a second at most, and others do not wait for them.
#[tokio::test(start_paused = true)]
async fn the_answer_of_a_rejected_request_is_held_back() {
    let (control, cache) = (control(1), cache());
    let busy = enter(&control, &cache, "jane").await.unwrap();
    let mut waiting = pin!(enter(&control, &cache, "jane"));
    assert!(poll!(&mut waiting).is_pending());
    let begun = Instant::now();
    let mut rejected = pin!(enter(&control, &cache, "jane"));
    assert!(poll!(&mut rejected).is_pending());
    assert_eq!(
        seats(&control, "global-default"),
        (1, 1),
        "it is not in the queue"
    );
    rejected.await.unwrap_err();
    assert_eq!(begun.elapsed(), HELD_BACK);
    drop(busy);
    waiting.await.unwrap();
    assert_eq!(begun.elapsed(), HELD_BACK);
    let _all = control.held_back.acquire_many(4096).await.unwrap();
    let _busy = enter(&control, &cache, "jane").await.unwrap();
    let mut waiting = pin!(enter(&control, &cache, "jane"));
    assert!(poll!(&mut waiting).is_pending());
    enter(&control, &cache, "jane").await.unwrap_err();
    assert_eq!(begun.elapsed(), HELD_BACK, "too many are held back");
}

/// A client that goes away while it waits, or at the moment when it is dispatched.
#[tokio::test]
async fn a_dropped_request_leaves_nothing_behind() {
    let (control, cache) = (control(1), cache());
    let busy = enter(&control, &cache, "jane").await.unwrap();
    for is_dispatched in [false, true] {
        let mut waiting = Box::pin(enter(&control, &cache, "joe"));
        assert!(poll!(&mut waiting).is_pending());
        if is_dispatched {
            busy.rest();
            assert_eq!(seats(&control, "global-default"), (1, 0));
        }
        drop(waiting);
        let used = if is_dispatched { 0 } else { 1 };
        assert_eq!(seats(&control, "global-default"), (used, 0));
    }
    assert!(enter(&control, &cache, "joe").await.is_ok());
}

#[tokio::test]
async fn exempt_requests_wait_for_nothing() {
    let (control, cache) = (control(1), cache());
    let admin = user("admin", &["system:masters"]);
    let mut held = Vec::new();
    for _ in 0..100 {
        let admission = take(&control, &cache, &admin, "get").await.unwrap();
        held.push(admission);
    }
    assert_eq!(seats(&control, "exempt"), (100, 0));
    drop(held);
    assert_eq!(seats(&control, "exempt"), (0, 0));
}

#[tokio::test]
async fn a_request_that_waits_for_its_client_holds_no_seat() {
    let (control, cache) = (control(1), cache());
    let slow = enter(&control, &cache, "jane").await.unwrap();
    slow.rest();
    let other = enter(&control, &cache, "joe").await.unwrap();
    let mut resumed = pin!(slow.resume());
    assert!(poll!(&mut resumed).is_pending());
    drop(other);
    resumed.await.unwrap();
    assert_eq!(seats(&control, "global-default"), (1, 0));
}

/// Returns the seats of a watch that has been admitted.
async fn begin(control: &FlowControl, is_marked: bool) -> Initialization {
    let watch = take(control, &cache(), &user("jane", &[]), "watch").await;
    let watch = watch.unwrap();
    let initialization = Initialization::of(&watch, is_marked);
    watch.rest();
    initialization
}

#[tokio::test]
async fn a_watch_holds_its_seats_until_its_initial_state_is_sent() {
    let control = control(1);
    let is_end = |event: &i32| *event == 2;
    let marked = begin(&control, true).await;
    let mut events = pin!(marked.over(stream::iter([1, 2, 3]), is_end));
    for held in [(1, 0), (0, 0)] {
        events.next().await;
        assert_eq!(seats(&control, "global-default"), held);
    }
    let unmarked = begin(&control, false).await;
    let changes = stream::iter([1]).chain(stream::pending());
    let mut events = pin!(unmarked.over(changes, is_end));
    events.next().await;
    assert_eq!(seats(&control, "global-default"), (1, 0));
    assert!(poll!(events.next()).is_pending());
    assert_eq!(seats(&control, "global-default"), (0, 0));
    let marked = begin(&control, true).await;
    let mut events = Box::pin(marked.over(stream::pending(), is_end));
    assert!(poll!(events.next()).is_pending());
    assert_eq!(
        seats(&control, "global-default"),
        (1, 0),
        "the state is on its way"
    );
    drop(events);
    assert_eq!(seats(&control, "global-default"), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_watch_of_a_client_that_does_not_read_holds_its_seats_for_ten_seconds() {
    let control = control(1);
    let initialization = begin(&control, true).await;
    let _events = initialization.over(stream::iter([1]), |_| false);
    let begun = Instant::now();
    let _next = enter(&control, &cache(), "joe").await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_write_keeps_its_seats_while_watchers_are_told() {
    let (control, cache) = (FlowControl::default(), cache());
    let watches: Vec<_> = (0..20)
        .map(|_| control.begin_watch(&pods("watch")))
        .collect();
    let of_node = Attributes::clone(&pods("watch")).selected_by("spec.nodeName=a", "");
    let _of_node = control.begin_watch(&of_node);
    let (jane, asked) = (user("jane", &[]), pods("create"));
    let admission = take(&control, &cache, &jane, "create").await.unwrap();
    assert_eq!(seats(&control, "global-default"), (2, 0));
    drop(admission);
    assert_eq!(seats(&control, "global-default"), (2, 0));
    tokio::time::sleep(Duration::from_millis(6)).await;
    assert_eq!(seats(&control, "global-default"), (0, 0));
    drop(watches);
    assert_eq!(control.told(asked.resource.as_ref().unwrap()), 0);
}

#[test]
fn a_list_takes_seats_by_what_it_reads() {
    let pods_kind = kinds().by_resource("pods");
    let of = |text: &str, verb| {
        let reading = Reading::of_query(pods_kind, verb, &Query::parse(text));
        reading.list.is_some()
    };
    assert!(of("", "list"));
    assert!(of("", "watch"));
    assert!(of("resourceVersion=0", "watch"));
    assert!(of("resourceVersion=5&sendInitialEvents=true", "watch"));
    assert!(!of("resourceVersion=5", "watch"));
    assert!(!of("sendInitialEvents=false", "watch"));
}

#[tokio::test]
async fn a_level_that_is_gone_serves_the_requests_that_it_has() {
    let (control, cache) = (control(1), cache());
    let first = enter(&control, &cache, "jane").await.unwrap();
    let mut second = pin!(enter(&control, &cache, "joe"));
    assert!(poll!(&mut second).is_pending());
    let (levels, schemas) = flowcontrol::mandatory();
    control.apply(levels, schemas);
    assert!(level(&control, "global-default").is_quiescing());
    let third = enter(&control, &cache, "jim").await.unwrap();
    assert_eq!(seats(&control, "catch-all"), (1, 0));
    drop(first);
    drop(second.await.unwrap());
    control.adjust();
    assert!(!control.active().levels.contains_key("global-default"));
    drop(third);
}

#[tokio::test(start_paused = true)]
async fn an_idle_level_lends_its_seats() {
    let (control, cache) = (FlowControl::default(), cache());
    let limit = |control: &FlowControl| level(control, "global-default").limit();
    let before = limit(&control);
    let mut held = Vec::new();
    for number in 0..before {
        held.push(
            enter(&control, &cache, &format!("user-{number}"))
                .await
                .unwrap(),
        );
    }
    tokio::time::advance(Duration::from_secs(10)).await;
    control.adjust();
    assert!(limit(&control) > before, "{} seats", limit(&control));
    assert!(
        level(&control, "leader-election").limit() >= 25,
        "it lends none"
    );
}

#[tokio::test]
async fn without_fairness_reads_and_writes_have_limits_of_their_own() {
    let (control, cache) = (FlowControl::without_fairness(1, 1), cache());
    assert!(!control.is_fair());
    let enter = async |user: &Identity, verb| take(&control, &cache, user, verb).await;
    let jane = user("jane", &[]);
    let read = enter(&jane, "list").await.unwrap();
    let _write = enter(&jane, "create").await.unwrap();
    let error = enter(&jane, "get").await.unwrap_err();
    assert_eq!(error.reason, Reason::TooManyRequests);
    assert!(enter(&jane, "watch").await.is_ok());
    assert!(
        enter(&user("admin", &["system:masters"]), "get")
            .await
            .is_ok()
    );
    drop(read);
    assert!(enter(&jane, "get").await.is_ok());
}

#[tokio::test]
async fn the_debug_pages_show_levels_queues_and_requests() {
    let (control, cache) = (control(1), cache());
    let _held = enter(&control, &cache, "jane").await.unwrap();
    let mut waiting = pin!(enter(&control, &cache, "joe"));
    assert!(poll!(&mut waiting).is_pending());
    let admin = user("admin", &["system:masters"]);
    let _exempt = take(&control, &cache, &admin, "delete").await.unwrap();
    let rows = |page| {
        let text = control.page(page);
        let rows = text.lines().map(|line| {
            let cells = line.split(',').map(|cell| cell.trim().to_owned());
            cells.collect::<Vec<_>>()
        });
        rows.collect::<Vec<_>>()
    };
    let levels = rows(Page::PriorityLevels);
    assert_eq!(
        levels[0][..3],
        ["PriorityLevelName", "ActiveQueues", "IsIdle"]
    );
    let global = levels
        .iter()
        .find(|row| row[0] == "global-default")
        .unwrap();
    assert_eq!(
        global[1..],
        ["1", "false", "false", "1", "1", "1", "0", "0", "0"]
    );
    let queues = rows(Page::Queues);
    assert_eq!(queues[1][..3], ["global-default", "0", "0"]);
    let global = |row: &&Vec<String>| row[0] == "global-default";
    assert_eq!(
        queues.iter().filter(global).count(),
        128,
        "those without requests, too"
    );
    let seats: usize = queues[1..]
        .iter()
        .map(|row| row[4].parse::<usize>().unwrap())
        .sum();
    assert_eq!(seats, 1);
    let requests = rows(Page::Requests { with_details: true });
    assert_eq!(requests[0].len(), 18);
    let of = |user: &str| requests.iter().find(|row| row[10] == user).unwrap();
    assert_eq!(of("jane")[3], "-1", "it is executed");
    assert_eq!(of("joe")[3], "0");
    assert_eq!(of("admin")[..4], ["exempt", "exempt", "-1", "-1"]);
    assert_eq!(of("joe")[11..17], ["get", "", "a", "", "v1", "pods"]);
}
