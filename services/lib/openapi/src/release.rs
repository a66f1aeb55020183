//! Facts of Kubernetes 1.36 that the rules of fields do not say: which fields are required, their known values, and
//! which fields later releases have.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The required fields of messages in which they are not those that JSON always writes: upstream's `+optional` and
/// `+required` differ there from what Go encodes.
const REQUIRED: &[(&str, &[&str])] = &[
    (
        "k8s.admissionregistration.v1.ValidatingAdmissionPolicyBinding",
        &["spec"],
    ),
    (
        "k8s.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec",
        &["policyName", "validationActions"],
    ),
    ("k8s.apiextensions.v1.CustomResourceDefinitionStatus", &[]),
    ("k8s.apps.v1.ControllerRevision", &["revision"]),
    ("k8s.apps.v1.StatefulSetOrdinals", &[]),
    ("k8s.apps.v1.StatefulSetSpec", &["selector", "template"]),
    ("k8s.apps.v1.StatefulSetStatus", &["replicas"]),
    ("k8s.authentication.v1.TokenRequest", &[]),
    ("k8s.authentication.v1.TokenRequestSpec", &[]),
    ("k8s.authentication.v1.TokenRequestStatus", &[]),
    ("k8s.authentication.v1.TokenReviewSpec", &["token"]),
    ("k8s.autoscaling.v1.HorizontalPodAutoscaler", &["spec"]),
    ("k8s.autoscaling.v2.HorizontalPodAutoscaler", &["spec"]),
    (
        "k8s.autoscaling.v2.HorizontalPodAutoscalerStatus",
        &["desiredReplicas"],
    ),
    ("k8s.batch.v1.CronJob", &["spec"]),
    (
        "k8s.batch.v1.PodFailurePolicyOnPodConditionsPattern",
        &["type"],
    ),
    (
        "k8s.core.v1.AzureFilePersistentVolumeSource",
        &["secretName", "shareName"],
    ),
    ("k8s.core.v1.ContainerImage", &[]),
    ("k8s.core.v1.ContainerRestartRule", &["action"]),
    ("k8s.core.v1.ContainerRestartRuleOnExitCodes", &["operator"]),
    ("k8s.core.v1.Event", &["involvedObject", "metadata"]),
    ("k8s.core.v1.GRPCAction", &["port"]),
    ("k8s.core.v1.ImageVolumeStatus", &["imageRef"]),
    ("k8s.core.v1.NodeRuntimeHandler", &[]),
    (
        "k8s.core.v1.PodCertificateProjection",
        &["keyType", "signerName"],
    ),
    ("k8s.core.v1.ProjectedVolumeSource", &[]),
    ("k8s.core.v1.TypedLocalObjectReference", &["kind", "name"]),
    ("k8s.core.v1.TypedObjectReference", &["kind", "name"]),
    ("k8s.discovery.v1.EndpointSlice", &["addressType"]),
    ("k8s.events.v1.Event", &["eventTime"]),
    (
        "k8s.flowcontrol.v1.FlowSchemaSpec",
        &["priorityLevelConfiguration"],
    ),
    ("k8s.flowcontrol.v1.LimitedPriorityLevelConfiguration", &[]),
    ("k8s.flowcontrol.v1.QueuingConfiguration", &[]),
    (
        "k8s.flowcontrol.v1.ResourcePolicyRule",
        &["apiGroups", "resources", "verbs"],
    ),
    ("k8s.networking.v1.IPAddress", &["spec"]),
    ("k8s.networking.v1.IPAddressSpec", &["parentRef"]),
    (
        "k8s.networking.v1.IngressClassParametersReference",
        &["kind", "name"],
    ),
    ("k8s.networking.v1.NetworkPolicySpec", &[]),
    ("k8s.networking.v1.ParentReference", &["name", "resource"]),
    ("k8s.policy.v1.PodDisruptionBudgetStatus", &[]),
    ("k8s.rbac.v1.ClusterRole", &[]),
    ("k8s.rbac.v1.Role", &[]),
    ("k8s.rbac.v1.RoleRef", &["kind", "name"]),
    (
        "k8s.resource.v1.AllocatedDeviceStatus",
        &["device", "driver", "pool"],
    ),
    ("k8s.resource.v1.CapacityRequestPolicy", &[]),
    ("k8s.resource.v1.CapacityRequestPolicyRange", &["min"]),
    ("k8s.resource.v1.CounterSet", &["counters", "name"]),
    ("k8s.resource.v1.DeviceClaim", &[]),
    (
        "k8s.resource.v1.DeviceCounterConsumption",
        &["counterSet", "counters"],
    ),
    ("k8s.resource.v1.ResourceClaimSpec", &[]),
    ("k8s.scheduling.v1.PriorityClass", &[]),
    ("k8s.storage.v1.CSINodeDriver", &["name", "nodeID"]),
];

/// The fields that later releases have. They are stored, but no schema of 1.36 has them.
const LATER: &[(&str, &[&str])] = &[
    ("k8s.authentication.v1.TokenRequestSpec", &["attestations"]),
    (
        "k8s.autoscaling.v2.HorizontalPodAutoscalerCondition",
        &["observedGeneration"],
    ),
    ("k8s.batch.v1.JobSpec", &["scheduling"]),
    ("k8s.core.v1.ClusterTrustBundleProjection", &["user"]),
    ("k8s.core.v1.ConfigMapVolumeSource", &["defaultUser"]),
    ("k8s.core.v1.DownwardAPIVolumeFile", &["user"]),
    ("k8s.core.v1.DownwardAPIVolumeSource", &["defaultUser"]),
    ("k8s.core.v1.EmptyDirVolumeSource", &["mode"]),
    ("k8s.core.v1.GRPCAction", &["mode"]),
    ("k8s.core.v1.HTTPGetAction", &["protocol"]),
    ("k8s.core.v1.KeyToPath", &["user"]),
    (
        "k8s.core.v1.NodeAllocatableResourceClaimStatus",
        &["mapping", "overhead"],
    ),
    ("k8s.core.v1.NodeSpec", &["podPreemptionPolicy"]),
    ("k8s.core.v1.PersistentVolumeClaimStatus", &["healthStatus"]),
    ("k8s.core.v1.PodCertificateProjection", &["user"]),
    ("k8s.core.v1.PodSpec", &["evictionResponders"]),
    ("k8s.core.v1.PodStatus", &["volumeHealth"]),
    ("k8s.core.v1.ProjectedVolumeSource", &["defaultUser"]),
    ("k8s.core.v1.SecretVolumeSource", &["defaultUser"]),
    ("k8s.core.v1.ServiceAccountTokenProjection", &["user"]),
    ("k8s.core.v1.VolumeMount", &["bindMountOptions"]),
    ("k8s.resource.v1.Device", &["nodeAllocatableResources"]),
    (
        "k8s.resource.v1.DeviceRequestAllocationResult",
        &["skipNodeOperations"],
    ),
    (
        "k8s.resource.v1.ResourceSliceSpec",
        &["partitionTypeAttribute", "skipNodeOperations"],
    ),
    ("k8s.storage.v1.CSINode", &["status"]),
];

/// The known values of fields, as `message.field: value | value`.
const ENUMS: &str = include_str!("enums.txt");

static VALUES: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let lines = ENUMS.lines().filter_map(|line| line.split_once(": "));
    let entries = lines.map(|(field, values)| {
        let values = values.split('|').map(str::trim);
        (field, values.collect())
    });
    entries.collect()
});

fn of(table: &[(&str, &'static [&'static str])], message: &str) -> Option<&'static [&'static str]> {
    let mut rows = table.iter();
    rows.find(|(name, _)| *name == message)
        .map(|(_, fields)| *fields)
}

/// Returns the required fields of a message; `None` if they are those that JSON always writes.
pub(super) fn required(message: &str) -> Option<&'static [&'static str]> {
    of(REQUIRED, message)
}

/// Returns whether only later releases have a field.
pub(super) fn is_later(message: &str, field: &str) -> bool {
    of(LATER, message).is_some_and(|fields| fields.contains(&field))
}

/// Returns the known values of a field; `None` if it may have others.
pub(super) fn values(message: &str, field: &str) -> Option<&'static [&'static str]> {
    let values = VALUES.get(&*format!("{message}.{field}"));
    values.map(Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use setpoint_codec::rules;

    use super::*;

    #[test]
    fn every_row_is_about_a_field_of_a_message() {
        let rows = REQUIRED.iter().chain(LATER);
        let rows = rows.flat_map(|(message, fields)| fields.iter().map(|field| (*message, *field)));
        let enums = VALUES.keys().filter_map(|field| field.rsplit_once('.'));
        for (message, field) in rows.chain(enums) {
            let of = rules::message(message).unwrap_or_else(|| panic!("{message}"));
            let mut fields = of.fields();
            let is_known = fields.any(|known| known.descriptor.json_name() == field);
            assert!(is_known, "{message}.{field}");
        }
    }
}
