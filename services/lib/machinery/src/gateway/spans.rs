//! Tells the gateway which spans around its calls have been exported, so that it knows which of its own have a parent.

use std::sync::Arc;
use std::time::Duration;

use futures::future::ready;
use futures::stream::once;
use futures::{Stream, StreamExt as _};
use setpoint_proto::exported;
use setpoint_proto::setpoint::SpansReport;
use setpoint_proto::setpoint::spans_client::SpansClient;
use tokio::sync::broadcast::Receiver;
use tokio::time::sleep;
use tokio_stream::wrappers::BroadcastStream;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::transport::Channel;

use crate::{Backoff, Tasks};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Reports until `stop`, and returns the name under which it does; `None` where this process exports nothing.
pub(super) fn report(channel: Channel, tasks: Tasks, stop: CancellationToken) -> Option<u64> {
    let exported = exported::listen()?;
    let caller = rand::random();
    tokio::spawn(async move {
        let start = || {
            go_on(
                channel.clone(),
                caller,
                exported.resubscribe(),
                stop.clone(),
            )
        };
        tasks.supervise("spans", "", start).await;
    });
    Some(caller)
}

/// A stream that breaks is begun anew, perhaps at another gateway. One that is stopped ends in good order.
async fn go_on(
    channel: Channel,
    caller: u64,
    exported: Receiver<Arc<[u64]>>,
    stop: CancellationToken,
) {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    let mut client = SpansClient::new(channel);
    while !stop.is_cancelled() {
        let reports = reports(caller, exported.resubscribe(), stop.clone());
        match client.report(reports).await {
            Ok(_) => backoff.reset(),
            // A gateway that keeps nothing back need not be told anything.
            Err(status) if status.code() == Code::Unimplemented => return,
            Err(_) => {}
        }
        stop.run_until_cancelled(sleep(backoff.next_delay())).await;
    }
}

/// First who it is, then each batch.
fn reports(
    caller: u64,
    exported: Receiver<Arc<[u64]>>,
    stop: CancellationToken,
) -> impl Stream<Item = SpansReport> {
    let introduction = once(ready(Arc::default()));
    let batches = BroadcastStream::new(exported).filter_map(|batch| ready(batch.ok()));
    let report = move |spans: Arc<[u64]>| SpansReport {
        caller,
        exported: spans.to_vec(),
    };
    let reports = introduction.chain(batches).map(report);
    reports.take_until(stop.cancelled_owned())
}
