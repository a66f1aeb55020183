//! The claims that a Pod uses.

use setpoint_proto::core::PodSpec;

/// The use of a claim by a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimUse {
    /// The name of the claim.
    pub name: Box<str>,
    /// Whether the claim belongs to the Pod: that of an ephemeral volume.
    pub is_ephemeral: bool,
}

impl ClaimUse {
    /// Returns the claims of a Pod's volumes.
    pub fn of_pod(spec: &PodSpec, pod: &str) -> Vec<Self> {
        let volumes = spec.volumes.iter().filter_map(|volume| {
            let source = &volume.volume_source;
            let claim = source.persistent_volume_claim.as_ref();
            let named = claim.map(|claim| claim.claim_name.as_str().into());
            let is_ephemeral = named.is_none() && source.ephemeral.is_some();
            let own = is_ephemeral.then(|| format!("{pod}-{}", volume.name).into());
            Some(Self {
                name: named.or(own)?,
                is_ephemeral,
            })
        });
        volumes.collect()
    }
}
