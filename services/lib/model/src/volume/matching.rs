//! The volume that fits a claim.

use std::collections::BTreeMap;

use super::{Claim, Volume};
use crate::placement;

/// A node on which a volume must be usable.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The name of the node.
    pub node: &'a str,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}

impl Volume {
    /// Returns whether it can be used on a node.
    pub fn is_usable_on(&self, site: Site<'_>) -> bool {
        let matches = |term| placement::matches(term, site.node, site.labels);
        self.nodes
            .as_ref()
            .is_none_or(|terms| terms.iter().any(matches))
    }
}

/// Checks whether a volume is what a claim asks for, its selector aside: a user who names a volume overrides that.
///
/// # Errors
/// The first difference, in upstream's words.
pub fn satisfies(volume: &Volume, claim: &Claim) -> Result<(), String> {
    let supports = |mode: &String| volume.access_modes.contains(mode);
    if volume.meta.deleting {
        return Err(format!(
            "the volume is marked for deletion {:?}",
            volume.name()
        ));
    }
    for (differs, difference) in [
        (claim.size > volume.capacity, "requested PV is too small"),
        (
            claim.class() != volume.class,
            "storageClassName does not match",
        ),
        (
            claim.attributes_class != volume.attributes_class,
            "volumeAttributesClassName does not match",
        ),
        (claim.mode != volume.mode, "incompatible volumeMode"),
        (
            !claim.access_modes.iter().all(supports),
            "incompatible accessMode",
        ),
    ] {
        if differs {
            return Err(difference.to_owned());
        }
    }
    Ok(())
}

/// Returns the volume that fits a claim best: the one that is reserved for it, or else the smallest one that is
/// available, of equal ones that with the fewest access modes. With a site, only volumes that are usable there.
///
/// `is_delayed` claims wait for their first Pod: without a site, only a reserved volume fits them. A reserved volume
/// must be large enough and have the volume mode, and nothing else.
pub fn best<'v, V>(
    claim: &Claim,
    volumes: impl IntoIterator<Item = &'v V>,
    site: Option<Site<'_>>,
    is_delayed: bool,
) -> Option<&'v V>
where
    V: AsRef<Volume> + ?Sized,
{
    let mut best: Option<&V> = None;
    for candidate in volumes {
        let volume = candidate.as_ref();
        let usable = site.is_none_or(|site| volume.is_usable_on(site));
        let suits = claim.size <= volume.capacity
            && claim.mode == volume.mode
            && claim.attributes_class == volume.attributes_class
            && !volume.meta.deleting;
        if volume.claim.is_some() {
            if suits && volume.is_reserved_for(claim) {
                return usable.then_some(candidate);
            }
            continue;
        }
        let selected = |selector: &crate::Selector| selector.matches(&volume.meta.labels);
        let fits = usable
            && volume.phase == "Available"
            && claim.selector.as_ref().is_none_or(selected)
            && satisfies(volume, claim).is_ok();
        let waits = is_delayed && site.is_none();
        let rank = |volume: &Volume| {
            let modes = volume.access_modes.len();
            (volume.capacity, modes, volume.meta.key.clone())
        };
        if fits && !waits && best.is_none_or(|best| rank(volume) < rank(best.as_ref())) {
            best = Some(candidate);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{
        NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectReference, PersistentVolume,
        PersistentVolumeClaim, VolumeNodeAffinity,
    };
    use setpoint_proto::meta::Quantity;

    use super::*;

    fn amount(size: &str) -> BTreeMap<String, Quantity> {
        [(
            "storage".to_owned(),
            Quantity {
                string: size.into(),
            },
        )]
        .into()
    }

    fn volume(name: &str, size: &str, change: impl FnOnce(&mut PersistentVolume)) -> Volume {
        let mut object = PersistentVolume::default();
        object.metadata.name = name.into();
        object.spec.capacity = amount(size);
        object.spec.access_modes = vec!["ReadWriteOnce".into()];
        object.status.phase = "Available".into();
        change(&mut object);
        Volume::of(&object)
    }

    fn claim(size: &str, change: impl FnOnce(&mut PersistentVolumeClaim)) -> Claim {
        let mut object = PersistentVolumeClaim::default();
        let meta = &mut object.metadata;
        (meta.namespace, meta.name, meta.uid) = ("shop".into(), "data".into(), "1".into());
        object.spec.resources.requests = amount(size);
        object.spec.access_modes = vec!["ReadWriteOnce".into()];
        change(&mut object);
        Claim::of(&object)
    }

    fn found(claim: &Claim, volumes: &[Volume]) -> Option<String> {
        let best = best(claim, volumes, None, false);
        best.map(|volume| volume.name().to_owned())
    }

    fn reserve(uid: &str) -> Option<ObjectReference> {
        Some(ObjectReference {
            namespace: "shop".into(),
            name: "data".into(),
            uid: uid.into(),
            ..Default::default()
        })
    }

    #[test]
    fn the_smallest_volume_that_is_large_enough_is_bound() {
        let volumes = [
            volume("small", "1Gi", |_| {}),
            volume("large", "10Gi", |_| {}),
            volume("fitting", "2Gi", |_| {}),
        ];
        assert_eq!(
            found(&claim("2Gi", |_| {}), &volumes).as_deref(),
            Some("fitting")
        );
        assert_eq!(
            found(&claim("3Gi", |_| {}), &volumes).as_deref(),
            Some("large")
        );
        assert_eq!(found(&claim("11Gi", |_| {}), &volumes), None);
    }

    #[test]
    fn a_volume_of_another_class_mode_access_label_or_phase_does_not_fit() {
        let plain = claim("1Gi", |_| {});
        let refused: [fn(&mut PersistentVolume); 6] = [
            |volume| volume.spec.storage_class_name = "fast".into(),
            |volume| volume.spec.volume_mode = Some("Block".into()),
            |volume| volume.spec.access_modes = vec!["ReadOnlyMany".into()],
            |volume| volume.status.phase = "Released".into(),
            |volume| volume.spec.volume_attributes_class_name = Some("gold".into()),
            |volume| volume.metadata.deletion_timestamp = Some(jiff::Timestamp::UNIX_EPOCH.into()),
        ];
        for (n, refused) in refused.into_iter().enumerate() {
            assert_eq!(found(&plain, &[volume("v", "1Gi", refused)]), None, "{n}");
        }
        let labeled = claim("1Gi", |claim| {
            let selector = claim.spec.selector.get_or_insert_default();
            selector.match_labels.insert("disk".into(), "ssd".into());
        });
        let with_label = |value: &str| {
            volume("v", "1Gi", |volume| {
                let labels = &mut volume.metadata.labels;
                labels.insert("disk".into(), value.into());
            })
        };
        assert_eq!(found(&labeled, &[with_label("hdd")]), None);
        assert!(found(&labeled, &[with_label("ssd")]).is_some());
    }

    #[test]
    fn a_reserved_volume_is_bound_before_all_others_and_to_no_other_claim() {
        let reserved = |uid: &str| {
            volume("reserved", "5Gi", |volume| {
                volume.spec.claim_ref = reserve(uid);
                volume.spec.storage_class_name = "other".into();
            })
        };
        let smaller = volume("a", "1Gi", |_| {});
        let own = claim("1Gi", |_| {});
        for uid in ["", "1"] {
            let volumes = [smaller.clone(), reserved(uid)];
            assert_eq!(found(&own, &volumes).as_deref(), Some("reserved"), "{uid}");
        }
        let volumes = [smaller, reserved("2")];
        assert_eq!(found(&own, &volumes).as_deref(), Some("a"));
        assert_eq!(found(&claim("6Gi", |_| {}), &volumes), None, "too small");
    }

    #[test]
    fn a_delayed_claim_takes_a_volume_only_at_a_site() {
        let own = claim("1Gi", |_| {});
        let local = volume("local", "1Gi", |volume| {
            let here = NodeSelectorRequirement {
                key: "kubernetes.io/hostname".into(),
                operator: "In".into(),
                values: vec!["one".into()],
            };
            volume.spec.node_affinity = Some(VolumeNodeAffinity {
                required: Some(NodeSelector {
                    node_selector_terms: vec![NodeSelectorTerm {
                        match_expressions: vec![here],
                        ..Default::default()
                    }],
                }),
            });
        });
        let volumes = [local];
        let at = |host: &str| {
            let labels = [("kubernetes.io/hostname".to_owned(), host.to_owned())].into();
            let site = Site {
                node: host,
                labels: &labels,
            };
            best(&own, &volumes, Some(site), true).is_some()
        };
        assert!(best(&own, &volumes, None, true).is_none());
        assert!(at("one"));
        assert!(!at("two"));
    }

    #[test]
    fn a_named_volume_must_be_what_the_claim_asks_for_in_upstreams_words() {
        let own = claim("2Gi", |claim| {
            claim.spec.storage_class_name = Some("fast".into());
        });
        let fast = |change: fn(&mut PersistentVolume)| {
            volume("v", "2Gi", |volume| {
                volume.spec.storage_class_name = "fast".into();
                change(volume);
            })
        };
        let problem = |change| satisfies(&fast(change), &own).err();
        assert_eq!(problem(|_| {}), None);
        let small = problem(|volume| volume.spec.capacity = amount("1Gi"));
        assert_eq!(small.as_deref(), Some("requested PV is too small"));
        let class = problem(|volume| volume.spec.storage_class_name.clear());
        assert_eq!(class.as_deref(), Some("storageClassName does not match"));
        let mode = problem(|volume| volume.spec.volume_mode = Some("Block".into()));
        assert_eq!(mode.as_deref(), Some("incompatible volumeMode"));
        let access = problem(|volume| volume.spec.access_modes.clear());
        assert_eq!(access.as_deref(), Some("incompatible accessMode"));
        let deleted = problem(|volume| {
            volume.metadata.deletion_timestamp = Some(jiff::Timestamp::UNIX_EPOCH.into());
        });
        assert_eq!(
            deleted.as_deref(),
            Some("the volume is marked for deletion \"v\"")
        );
    }
}
