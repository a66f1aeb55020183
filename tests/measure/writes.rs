//! Measures creates of a 1 KB ConfigMap through the gateway, compared with compare-and-set in etcd itself.

use etcd_client::{Compare, CompareOp, Txn, TxnOp};
use setpoint_proto::Resource;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::meta::ObjectMeta;
use setpoint_tests::{Address, Cluster, client};

use crate::load;
use crate::process::cpu;
use crate::report::Report;

/// Number of concurrent callers.
pub const CALLERS: usize = 64;
/// Bytes in an object.
pub const SIZE: usize = 1024;

/// Reports both rates, measured in turn on the same etcd.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let mut cluster = Cluster::bare();
    let raw = raw_etcd(&cluster.etcd_url(), seconds).await?;
    let gateway = cluster.process("gateway-0").pid();
    let before = cpu(gateway);
    let ours = creates(&cluster.gateway_url(), 0, seconds).await?;
    let spent = cpu(gateway) - before;
    report.add("raw etcd CAS at 64 callers", raw.rate, "/s");
    report.add("raw etcd CAS, p99", raw.percentile(0.99), "ms");
    report.add("gateway creates at 64 callers", ours.rate, "/s");
    report.add("gateway creates, p50", ours.percentile(0.5), "ms");
    report.add("gateway creates, p99", ours.percentile(0.99), "ms");
    report.add("gateway CPU per create", ours.per_call(spent), "µs");
    report.add("gateway creates ÷ raw etcd CAS", ours.rate / raw.rate, "");
    Ok(())
}

/// Runs compare-and-set in etcd itself, one key a call.
pub async fn raw_etcd(etcd: &Address, seconds: f64) -> anyhow::Result<load::Load> {
    let client = etcd.etcd().await?;
    load::run(CALLERS, seconds, move |caller, n| {
        let mut client = client.kv_client();
        Box::pin(async move {
            let key = format!("/raw/{caller}/{n}");
            let absent = Compare::create_revision(key.as_str(), CompareOp::Equal, 0);
            let put = TxnOp::put(key, vec![b'x'; SIZE], None);
            let answer = client
                .txn(Txn::new().when([absent]).and_then([put]))
                .await?;
            anyhow::ensure!(answer.succeeded(), "the key was there already");
            Ok(())
        })
    })
    .await
}

/// Runs creates of ConfigMaps with names that are unique to this `turn`.
pub async fn creates(gateway: &Address, turn: usize, seconds: f64) -> anyhow::Result<load::Load> {
    let data = "x".repeat(SIZE);
    creates_of(gateway, CALLERS, turn, seconds, move |metadata| ConfigMap {
        metadata,
        data: [("data".to_owned(), data.clone())].into(),
        ..Default::default()
    })
    .await
}

/// Runs creates of the objects that `object` makes, with names that are unique to this number of `callers` and this
/// `turn`.
pub async fn creates_of<T: Resource>(
    gateway: &Address,
    callers: usize,
    turn: usize,
    seconds: f64,
    object: impl Fn(ObjectMeta) -> T + Clone + Send + 'static,
) -> anyhow::Result<load::Load> {
    let gateway = client(gateway);
    load::run(callers, seconds, move |caller, n| {
        let gateway = gateway.clone();
        let object = object(ObjectMeta {
            namespace: "default".to_owned(),
            name: format!("bench-{callers}-{turn}-{caller}-{n}"),
            ..Default::default()
        });
        Box::pin(async move {
            gateway.create(&object).await?;
            Ok(())
        })
    })
    .await
}
