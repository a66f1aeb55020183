//! Measures the gateway with many CustomResourceDefinitions, as a cluster with several large operators has them.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Map, Value, json};
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_tests::{Address, Cluster, Size, client, http};

use crate::process::{cpu, memory};
use crate::report::Report;

const DEFINITIONS: usize = 500;
/// The number of kinds in a group.
const KINDS: usize = 10;
/// The number of properties of a spec. The JSON of a definition has some 10 KB, as many of operators do.
const PROPERTIES: usize = 60;
const CALLERS: usize = 16;
const DEADLINE: Duration = Duration::from_secs(120);

const GROUPS: &str = "/apis";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Reports the time until all are served, what they cost, and the times of discovery, OpenAPI and a new start.
pub async fn measure(report: &mut Report) -> anyhow::Result<()> {
    let size = Size {
        replicas: 1,
        process_nodes: 0,
        simulated_nodes: 0,
        ..Size::default()
    };
    let mut cluster = Cluster::start_as_shipped(size);
    let address = cluster.gateway_url();
    let gateway = cluster.process("gateway-0").pid();
    let (memory_before, cpu_before) = (memory(gateway), cpu(gateway));
    let begin = Instant::now();
    create_all(&cluster.gateway_url()).await?;
    report.add(
        format!("creating {DEFINITIONS} definitions"),
        seconds(begin),
        "s",
    );
    until(|| served(&address).map(|served| served == DEFINITIONS))?;
    report.add("until all are served", seconds(begin), "s");
    let each = |total: f64| total / DEFINITIONS as f64;
    let spent = (cpu(gateway) - cpu_before).as_secs_f64() * 1000.0;
    report.add("gateway CPU for a definition", each(spent), "ms");
    let grown = memory(gateway).saturating_sub(memory_before) as f64 / 1024.0;
    report.add("gateway memory for a definition", each(grown), "KiB");

    let accept = [("accept", AGGREGATED)];
    report_get(report, "aggregated discovery", &address, GROUPS, &accept)?;
    for (name, path) in [
        ("OpenAPI v2", "/openapi/v2"),
        ("OpenAPI v3, index", "/openapi/v3"),
        (
            "OpenAPI v3, a group",
            "/openapi/v3/apis/g0.bench.example.com/v1",
        ),
    ] {
        report_get(report, name, &address, path, &[])?;
    }
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    report.add(
        "gateway memory with all documents",
        mib(memory(gateway)),
        "MiB",
    );

    cluster.process("gateway-0").kill();
    let begin = Instant::now();
    cluster.start_gateway();
    until(|| Ok(http::get(&address, "/readyz").is_ok_and(|reply| reply.status == 200)))?;
    report.add(
        "gateway start to ready, with definitions",
        seconds(begin) * 1000.0,
        "ms",
    );
    let still = served(&address)?;
    anyhow::ensure!(
        still == DEFINITIONS,
        "{still} definitions are served after the start"
    );
    let gateway = cluster.process("gateway-0").pid();
    report.add("gateway memory after it", mib(memory(gateway)), "MiB");
    Ok(())
}

async fn create_all(gateway: &Address) -> anyhow::Result<()> {
    let gateway = client(gateway);
    let creates = (0..DEFINITIONS).map(|n| {
        let gateway = gateway.clone();
        async move {
            gateway
                .create(&definition(n)?)
                .await
                .map(drop)
                .context("a create")
        }
    });
    stream::iter(creates)
        .buffer_unordered(CALLERS)
        .try_collect()
        .await
}

/// Returns the number of custom kinds in discovery.
fn served(address: &Address) -> anyhow::Result<usize> {
    let answer = http::send("GET", address, GROUPS, &[("accept", AGGREGATED)], "")?;
    let list: Value = serde_json::from_str(&answer.body)?;
    let groups = list["items"].as_array().into_iter().flatten();
    let groups = groups.filter(|group| {
        let name = group["metadata"]["name"].as_str();
        name.is_some_and(|name| name.ends_with(".bench.example.com"))
    });
    let versions = groups.flat_map(|group| group["versions"].as_array().into_iter().flatten());
    let kinds = versions.filter_map(|version| version["resources"].as_array());
    Ok(kinds.map(Vec::len).sum())
}

/// Reports the first and the second time of a request, and the size of its answer.
fn report_get(
    report: &mut Report,
    name: &str,
    address: &Address,
    path: &str,
    headers: &[(&str, &str)],
) -> anyhow::Result<()> {
    for time in ["first", "again"] {
        let begin = Instant::now();
        let answer = http::send("GET", address, path, headers, "")?;
        anyhow::ensure!(answer.status == 200, "{path}: {}", answer.status);
        let size = answer.body.len() >> 10;
        report.add(
            format!("{name}, {size} KiB, {time}"),
            seconds(begin) * 1000.0,
            "ms",
        );
    }
    Ok(())
}

fn until(mut reached: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let begin = Instant::now();
    while !reached()? {
        anyhow::ensure!(begin.elapsed() < DEADLINE, "not reached in time");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

fn definition(n: usize) -> anyhow::Result<CustomResourceDefinition> {
    let group = format!("g{}.bench.example.com", n / KINDS);
    let plural = format!("kind{n}s");
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": properties()},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    });
    let version = json!({
        "name": "v1",
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Text", "type": "string", "jsonPath": ".spec.text0"}],
    });
    let definition = json!({
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {"plural": plural, "kind": format!("Kind{n}")},
            "scope": "Namespaced",
            "versions": [version],
        },
    });
    Ok(serde_json::from_value(definition)?)
}

fn properties() -> Map<String, Value> {
    let about =
        "A property with a description, of which schemas of operators consist for the most part.";
    let properties = (0..PROPERTIES).map(|n| match n % 3 {
        0 => (
            format!("text{n}"),
            json!({"type": "string", "description": about, "maxLength": 63}),
        ),
        1 => {
            let rule = json!({"rule": "self >= 0", "message": "must not be negative"});
            let schema = json!({"type": "integer", "description": about, "x-kubernetes-validations": [rule]});
            (format!("number{n}"), schema)
        }
        _ => {
            let item = json!({"type": "string", "description": about});
            let schema = json!({"type": "array", "items": item, "description": about});
            (format!("list{n}"), schema)
        }
    });
    properties.collect()
}
