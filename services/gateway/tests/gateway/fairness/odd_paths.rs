//! Requests of any path leave the metrics as they are.

use http::Request;

use crate::http::api::Api;

const ODD: usize = 10_000;

fn series() -> usize {
    let families = prometheus::gather();
    families
        .iter()
        .map(|family| family.get_metric().len())
        .sum()
}

fn path(kind: usize, number: usize) -> String {
    match kind {
        0 => format!("/odd-{number}"),
        1 => format!("/api/v{number}/pods"),
        2 => format!("/apis/odd-{number}.example.com/v1/things"),
        3 => format!("/api/v1/namespaces/odd-{number}/pods/odd-{number}"),
        4 => format!("/api/v1/odd-{number}"),
        5 => format!("/api/v1/namespaces/default/pods/a/odd-{number}"),
        6 => format!("/api/v1/pods?odd-{number}=1&labelSelector=a%3D{number}"),
        7 => format!("/healthz/odd-{number}"),
        _ => format!("/openapi/v3/odd-{number}"),
    }
}

const KINDS: usize = 9;

async fn ask(api: &Api, number: usize) {
    let method = ["GET", "POST", "PUT", "DELETE", "PATCH", "ODD"][number / KINDS % 6];
    let request = Request::builder()
        .method(method)
        .uri(path(number % KINDS, number))
        .header("user-agent", format!("odd-{number}"))
        .header("impersonate-user", format!("odd-{number}"));
    api.send(request, "").await;
}

/// Checks V16 (CVE-2020-8552): neither paths nor names, users or programs are labels.
#[tokio::test]
async fn ten_thousand_odd_paths_add_no_series() {
    let api = Api::start().await;
    // Each combination of a path and a method once.
    let combinations = KINDS * 6;
    for number in 0..combinations {
        ask(&api, number).await;
    }
    let before = series();
    for number in combinations..ODD {
        ask(&api, number).await;
    }
    let added = series().saturating_sub(before);
    // Other tests of this process may add a few of their own.
    assert!(added < 100, "{added} series were added to {before}");
}
