//! The end of a term whose Lease cannot be renewed, and its metrics.

use std::time::Duration;

use setpoint_controller::{Term, election};
use setpoint_proto::{ApiError, Reason};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::leaders::{Leaders, Replica, server, until_leads};
use crate::server::{Faults, eventually};

#[tokio::test(start_paused = true)]
async fn a_renewal_and_a_release_that_are_refused_are_tried_again_without_a_look_at_the_lease() {
    let (server, leaders) = (server().await, Leaders::default());
    let only = Replica::start(server.client("a"), &leaders, "a-0");
    until_leads(&leaders, "a-0").await;
    server.set_faults(Faults {
        refuse: Some(("Update", ApiError::new(Reason::Forbidden, "no"))),
        ..Faults::default()
    });
    sleep(Duration::from_secs(7)).await;
    let renewals = server.calls("Update");
    assert!(renewals > 2, "{renewals}");
    assert_eq!(leaders.leader().as_deref(), Some("a-0"));
    only.stop().await;
    assert_eq!(server.calls("Update") - renewals, 5);
    assert_eq!(server.calls("Get"), 0);
}

/// Checks L3: another replica may lead 15 s after the last renewal; the leader stops 13.5 s after it.
#[tokio::test(start_paused = true)]
async fn work_that_heeds_the_loss_of_its_term_can_end_in_order_until_others_may_lead() {
    for (seconds, in_order) in [(1, true), (2, false)] {
        let server = server().await;
        let (begun, ended) = (CancellationToken::new(), CancellationToken::new());
        let (begin, end) = (begun.clone(), ended.clone());
        let work = move |term: Term| {
            let (begin, end) = (begin.clone(), end.clone());
            async move {
                begin.cancel();
                term.lost.cancelled().await;
                sleep(Duration::from_secs(seconds)).await;
                end.cancel();
            }
        };
        let (settings, stop) = (election::Settings::default(), CancellationToken::new());
        let run = election::run(server.client("a"), settings, "test", "a-0", stop, work);
        let run = tokio::spawn(run);
        begun.cancelled().await;
        server.set_faults(Faults {
            hang: vec!["Update"],
            ..Faults::default()
        });
        sleep(Duration::from_secs(30)).await;
        assert_eq!(ended.is_cancelled(), in_order, "{seconds}");
        run.abort();
    }
}

/// Returns the value of the metric.
fn leads(lease: &str) -> Option<bool> {
    let families = prometheus::gather();
    let mut families = families.iter();
    let family = families.find(|family| family.name() == "leader_election_master_status")?;
    let mut gauges = family.get_metric().iter();
    let gauge = gauges.find(|metric| metric.get_label()[0].value() == lease)?;
    Some(gauge.get_gauge().get_value() > 0.0)
}

#[tokio::test(start_paused = true)]
async fn a_metric_is_1_while_a_process_leads() {
    for leader_elect in [false, true] {
        let server = server().await;
        server.set_faults(Faults {
            hang: vec!["Watch"],
            ..Faults::default()
        });
        let settings = election::Settings {
            leader_elect,
            ..election::Settings::default()
        };
        let (lease, stop) = (format!("measured-{leader_elect}"), CancellationToken::new());
        let (gateway, name) = (server.client("a"), lease.clone());
        let run = async move {
            let work = async |_: Term| std::future::pending().await;
            election::run(gateway, settings, &name, "a-0", stop, work).await
        };
        let run = tokio::spawn(run);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(leads(&lease), Some(!leader_elect));
        server.set_faults(Faults::default());
        eventually("it leads", async || leads(&lease) == Some(true)).await;
        run.abort();
    }
}
