//! A kubelet of a few lines: it runs the Pods that are bound to nodes with power, and removes those that are deleted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;
use setpoint_controller::client::Preconditions;
use setpoint_controller::{
    Client, Controller, Inputs, ObjectRef, Plan, Reader, Receipt, Reconciler, Step, Whole,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::{Node, Pod};
use setpoint_proto::{ApiError, Resource as _};
use tokio::time::sleep;

/// The name of the process, and the writer of its changes.
pub const NAME: &str = "kubelet";
/// The interval of a node's signs of life.
const HEARTBEAT: Duration = Duration::from_secs(10);
const LEASES: &str = "kube-node-lease";

/// The names of the nodes without power. Clones are the same.
pub type PoweredOff = Arc<Mutex<BTreeSet<String>>>;

/// Runs the kubelet of all nodes.
pub async fn run(client: Client, off: PoweredOff) {
    let (pods, nodes) = (
        client.informer::<Whole<Pod>>(),
        client.informer::<Whole<Node>>(),
    );
    let kubelet = Kubelet {
        pods: pods.reader(),
        off: off.clone(),
    };
    let (beating, known) = (client.clone(), nodes.reader());
    let controller = Controller::new(NAME, kubelet, client)
        .unelected()
        .for_(pods);
    let controller = controller.watches(nodes, |_| None);
    let running = controller.run(NAME, Default::default());
    let (run, ()) = tokio::join!(running, heartbeats(beating, known, off));
    run.unwrap();
}

/// Renews the Leases of all nodes with power.
async fn heartbeats(client: Client, nodes: Reader<Whole<Node>>, off: PoweredOff) {
    loop {
        for node in nodes.list() {
            let name = &node.meta.key.name;
            let is_off = off.lock().contains(name);
            if !is_off {
                renew(&client, name).await;
            }
        }
        sleep(HEARTBEAT).await;
    }
}

async fn renew(client: &Client, node: &str) {
    let key = Key::new(LEASES, node);
    let mut lease = client.get::<Lease>(&key).await.unwrap_or_default();
    lease.spec.holder_identity = Some(node.to_owned());
    lease.spec.renew_time = Some(Timestamp::now().into());
    let written = match lease.metadata.uid.is_empty() {
        false => client.update(&lease).await,
        true => {
            (lease.metadata.namespace, lease.metadata.name) = (key.namespace, key.name);
            client.create(&lease).await
        }
    };
    written.unwrap();
}

struct Kubelet {
    pods: Reader<Whole<Pod>>,
    off: PoweredOff,
}

/// An action of the kubelet on a Pod.
#[derive(Debug)]
enum Action {
    Run,
    Remove,
}

impl Reconciler for Kubelet {
    type Object = Pod;
    type World = Arc<Whole<Pod>>;
    type Action = Action;

    fn observe(&self, key: &Key, _: Inputs) -> Option<Self::World> {
        let pod = self.pods.get(key)?;
        let is_off = self.off.lock().contains(&pod.object.spec.node_name);
        (!is_off).then_some(pod)
    }

    fn meta(pod: &Self::World) -> &Meta {
        &pod.meta
    }

    fn plan(pod: &Self::World) -> Plan<Action> {
        let step = |action, because| Plan {
            steps: vec![Step { action, because }],
            ..Plan::default()
        };
        let Pod { spec, status, .. } = &pod.object;
        match (
            spec.node_name.is_empty(),
            pod.meta.deleting,
            status.phase.as_str(),
        ) {
            (true, ..) => Plan::default(),
            (_, true, _) => step(Action::Remove, "it is being deleted"),
            (_, _, "Pending") => step(Action::Run, "it is bound to the node"),
            _ => Plan::default(),
        }
    }

    fn touches(pod: &Self::World, _: &Action) -> Option<ObjectRef> {
        Some(pod.meta.key.clone().in_resource(Pod::RESOURCE))
    }

    async fn act(
        &self,
        client: &Client,
        pod: &Self::World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        let (key, uid) = (&pod.meta.key, &pod.meta.uid);
        match action {
            Action::Run => {
                let status = json!({ "metadata": { "uid": uid }, "status": running() });
                Ok(client.patch::<Pod>(key, "status", status).await?.receipt())
            }
            Action::Remove => {
                let same = Preconditions::uid(uid.clone());
                Ok(client.delete::<Pod>(key, same, Some(0)).await?.receipt())
            }
        }
    }
}

/// Returns the status of a Pod that runs and is ready.
fn running() -> serde_json::Value {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({
        "phase": "Running",
        "startTime": now,
        "podIP": "10.0.0.1",
        "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": now }],
        "containerStatuses": [{
            "name": "main", "ready": true, "started": true, "image": "app", "imageID": "app",
            "restartCount": 0, "state": { "running": { "startedAt": now } },
        }],
    })
}
