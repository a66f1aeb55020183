//! Warnings about a StatefulSet, besides those about its template.

use setpoint_proto::apps::StatefulSetSpec;

use crate::validation::claim;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::Warnings;

/// Warns of the claims and of the history. The paths of claims are upstream's.
pub(super) fn warn(spec: &StatefulSetSpec, is_update: bool, warnings: &mut Warnings) {
    let path = FieldPath::root("spec");
    let claims = path.field("volumeClaimTemplates");
    for (index, claim) in spec.volume_claim_templates.iter().enumerate() {
        let at = claims.index(index);
        match is_update {
            true => claim::warn_of_spec(&claim.spec, &at.field("Spec"), warnings),
            false => claim::warn_of_spec(&claim.spec, &at, warnings),
        }
    }
    if spec.revision_history_limit.is_some_and(|limit| limit < 0) {
        let text = "a negative value retains all historical revisions; a value >= 0 is recommended";
        warnings.about(&path.field("revisionHistoryLimit"), text);
    }
}
