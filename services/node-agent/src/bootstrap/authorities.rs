//! The CAs of the cluster, as gateways publish them in `kube-public/cluster-info`. While they are changed, there are
//! two: an agent trusts the new one before the old one goes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use setpoint_model::Key;
use setpoint_proto::core::ConfigMap;
use setpoint_tls::Pinned;

/// The label of a ConfigMap that gateways keep, and its value. Without it, the CAs are what somebody else says.
const KEPT: (&str, &str) = ("app.kubernetes.io/managed-by", "gateway");
/// The key of the text.
const KUBECONFIG: &str = "kubeconfig";
/// The field of the text that has the CAs.
const FIELD: &str = "certificate-authority-data: ";

/// Returns the key of the ConfigMap.
pub(super) fn key() -> Key {
    Key::new("kube-public", "cluster-info")
}

/// Returns the CAs to trust instead of `trusted`, in PEM; `None` if these stay. One of them is trusted already: without
/// it, the agent could lose all gateways by one write of somebody else, and no gateway could correct that.
pub(super) fn successors(trusted: &str, map: &ConfigMap) -> Option<String> {
    let (label, value) = KEPT;
    let is_kept = map
        .metadata
        .labels
        .get(label)
        .is_some_and(|own| own == value);
    let text = map.data.get(KUBECONFIG).filter(|_| is_kept)?;
    let mut lines = text.lines();
    let encoded = lines.find_map(|line| line.trim_start().strip_prefix(FIELD))?;
    let published = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let published = Pinned::parse(&published).ok()?;
    let pins = Pinned::parse(trusted).ok()?.pins();
    published.matching(&pins)?;
    (published.pins() != pins).then(|| published.pem())
}

#[cfg(test)]
mod tests {
    use setpoint_tls::authority::Authority;

    use super::*;

    fn map(authorities: &[&Authority]) -> ConfigMap {
        let pem: String = authorities.iter().map(|one| one.certificate()).collect();
        let text = format!(
            "apiVersion: v1\nclusters:\n- cluster:\n    {FIELD}{}\n    server: https://a\n",
            STANDARD.encode(pem)
        );
        let mut map = ConfigMap::default();
        map.data.insert(KUBECONFIG.to_owned(), text);
        map.metadata.labels.insert(KEPT.0.into(), KEPT.1.into());
        map
    }

    #[test]
    fn the_cas_are_followed_through_a_change_and_by_one_that_is_trusted_only() {
        let [old, new, other] =
            ["old", "new", "other"].map(|name| Authority::create(name).unwrap());
        let after = |trusted: &str, map: &ConfigMap| successors(trusted, map);
        assert_eq!(after(old.certificate(), &map(&[&old])), None);
        let both = format!("{}{}", new.certificate(), old.certificate());
        assert_eq!(
            after(old.certificate(), &map(&[&new, &old])),
            Some(both.clone())
        );
        assert_eq!(after(&both, &map(&[&new, &old])), None);
        assert_eq!(
            after(&both, &map(&[&new])).as_deref(),
            Some(new.certificate())
        );
        assert_eq!(after(old.certificate(), &map(&[&other])), None);
        let mut strange = map(&[&other, &old]);
        strange.metadata.labels.clear();
        assert_eq!(
            after(old.certificate(), &strange),
            None,
            "no gateway keeps it"
        );
        for text in ["", "    certificate-authority-data: !\n"] {
            let mut damaged = map(&[&new, &old]);
            damaged.data.insert(KUBECONFIG.to_owned(), text.to_owned());
            assert_eq!(after(old.certificate(), &damaged), None);
        }
    }
}
