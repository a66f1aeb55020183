//! Properties of the slices over random Pods and crashes.

use std::collections::BTreeSet;

use proptest::prelude::*;
use setpoint_endpointslice_controller::SLICE_MAX;

use crate::cluster::{Cluster, pod, selecting};

proptest! {
    /// A crash leaves any part of a plan undone.
    #[test]
    fn each_pod_is_in_one_slice_whatever_crashes(
        rounds in prop::collection::vec(
            (prop::collection::btree_map(0_u8..250, any::<bool>(), 0..250), 0_usize..6),
            1..6,
        ),
    ) {
        let mut cluster = Cluster::of(selecting(), []);
        for (pods, done) in rounds {
            let pods = pods.into_iter().map(|(n, ready)| pod(&format!("p{n}"), &format!("10.0.1.{n}"), ready));
            cluster.pods = Cluster::of(selecting(), pods).pods;
            let actions = cluster.actions();
            actions.into_iter().take(done).for_each(|action| cluster.apply(action));
        }
        cluster.settle();
        let addresses: Vec<_> = cluster.addresses().into_iter().map(|(ip, _)| ip).collect();
        let wanted: BTreeSet<_> = cluster.pods.values().map(|pod| pod.status.pod_ip.clone()).collect();
        prop_assert_eq!(addresses.len(), wanted.len());
        prop_assert_eq!(addresses.into_iter().collect::<BTreeSet<_>>(), wanted);
        for slice in cluster.slices() {
            prop_assert!(slice.endpoints.len() <= SLICE_MAX);
        }
    }
}
