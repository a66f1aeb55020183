//! The signers, and what each of them allows. Pure.

use setpoint_model::users::{ADMINISTRATORS, NODE_PREFIX, NODES};

use crate::Request;

/// A signer of this cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// Clients of the API.
    ApiClient,
    /// Kubelets as clients of the API.
    KubeletClient,
    /// Kubelets as servers.
    KubeletServing,
    /// Anything.
    LegacyUnknown,
}

impl Signer {
    /// Returns the signer of this name; `None` for signers of others.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "kubernetes.io/kube-apiserver-client" => Self::ApiClient,
            "kubernetes.io/kube-apiserver-client-kubelet" => Self::KubeletClient,
            "kubernetes.io/kubelet-serving" => Self::KubeletServing,
            "kubernetes.io/legacy-unknown" => Self::LegacyUnknown,
            _ => return None,
        })
    }

    /// Checks whether the signer signs a request. None signs one of an administrator, whose certificate could not be
    /// taken back: upstream refuses to admit it for clients of the API, and has another CA for other signers if it is
    /// told to.
    ///
    /// # Errors
    /// The first violation of its rules, in upstream's words.
    pub fn check(self, request: &Request, usages: &[String]) -> Result<(), String> {
        refuse(
            request
                .organizations
                .iter()
                .any(|one| one == ADMINISTRATORS),
            "the group system:masters is not allowed",
        )?;
        match self {
            Self::LegacyUnknown => Ok(()),
            Self::ApiClient => check_client_usages(usages),
            Self::KubeletClient => {
                check_node(request)?;
                refuse(
                    !request.dns_names.is_empty(),
                    "DNS subjectAltNames are not allowed",
                )?;
                refuse(
                    !request.ips.is_empty(),
                    "IP subjectAltNames are not allowed",
                )?;
                check_node_usages(usages, "client auth")
            }
            Self::KubeletServing => {
                check_node(request)?;
                let named = !request.dns_names.is_empty() || !request.ips.is_empty();
                refuse(!named, "DNS or IP subjectAltName is required")?;
                check_node_usages(usages, "server auth")
            }
        }
    }
}

/// Returns whether a request is one of a node for its own certificate.
pub(crate) fn is_of_itself(request: &Request, user: &str) -> bool {
    request.common_name == user
}

fn refuse(refused: bool, problem: &str) -> Result<(), String> {
    match refused {
        true => Err(problem.to_owned()),
        false => Ok(()),
    }
}

/// Checks what client and serving certificates of nodes have in common.
fn check_node(request: &Request) -> Result<(), String> {
    refuse(
        request.organizations != [NODES],
        "subject organization is not system:nodes",
    )?;
    refuse(
        !request.common_name.starts_with(NODE_PREFIX),
        "subject common name does not begin with system:node: ",
    )?;
    refuse(
        !request.emails.is_empty(),
        "email subjectAltNames are not allowed",
    )?;
    refuse(
        !request.uris.is_empty(),
        "URI subjectAltNames are not allowed",
    )
}

fn check_client_usages(usages: &[String]) -> Result<(), String> {
    let known = ["digital signature", "key encipherment", "client auth"];
    let mut others = usages
        .iter()
        .filter(|usage| !known.contains(&usage.as_str()));
    if let Some(other) = others.next() {
        return Err(format!("invalid usage for client certificate: {other}"));
    }
    let missing = !usages.iter().any(|usage| usage == "client auth");
    let problem = "missing required usage for client certificate: client auth";
    refuse(missing, problem)
}

/// Checks that the usages are exactly those of a node, with or without key encipherment, which only RSA keys are used
/// for.
fn check_node_usages(usages: &[String], purpose: &str) -> Result<(), String> {
    let mut rest: Vec<_> = usages.iter().map(String::as_str).collect();
    rest.sort_unstable();
    rest.dedup();
    rest.retain(|usage| *usage != "key encipherment");
    let mut needed = ["digital signature", purpose];
    needed.sort_unstable();
    let [first, second] = needed;
    let problem = format!("usages did not match [{first} key encipherment {second}]");
    refuse(rest != needed, &problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> Request {
        Request {
            common_name: "system:node:one".into(),
            organizations: vec![NODES.into()],
            ..Request::default()
        }
    }

    fn usages(usages: &[&str]) -> Vec<String> {
        usages.iter().map(|usage| (*usage).to_owned()).collect()
    }

    #[test]
    fn kubelets_get_certificates_of_their_own_names_only() {
        let allowed = usages(&["key encipherment", "digital signature", "client auth"]);
        type Change = fn(&mut Request);
        let check = |change: Change| {
            let mut request = node();
            change(&mut request);
            Signer::KubeletClient.check(&request, &allowed).err()
        };
        assert_eq!(check(|_| {}), None);
        let refused: [(Change, &str); 6] = [
            (
                |request| request.organizations.push("admins".into()),
                "subject organization is not system:nodes",
            ),
            (
                |request| request.common_name = "admin".into(),
                "subject common name does not begin with system:node: ",
            ),
            (
                |request| request.dns_names.push("one".into()),
                "DNS subjectAltNames are not allowed",
            ),
            (
                |request| request.ips.push([10, 0, 0, 1].into()),
                "IP subjectAltNames are not allowed",
            ),
            (
                |request| request.emails.push("a@example.com".into()),
                "email subjectAltNames are not allowed",
            ),
            (
                |request| request.uris.push("spiffe://a".into()),
                "URI subjectAltNames are not allowed",
            ),
        ];
        for (change, problem) in refused {
            assert_eq!(check(change).as_deref(), Some(problem));
        }
    }

    #[test]
    fn usages_are_those_of_the_signer() {
        let serving = |list: &[&str]| {
            let mut request = node();
            request.ips.push([10, 0, 0, 1].into());
            Signer::KubeletServing.check(&request, &usages(list))
        };
        assert!(serving(&["digital signature", "server auth"]).is_ok());
        assert!(serving(&["digital signature", "key encipherment", "server auth"]).is_ok());
        assert!(serving(&["server auth", "digital signature", "server auth"]).is_ok());
        assert!(serving(&["digital signature", "client auth"]).is_err());
        let mut named = node();
        named.dns_names.push("one".into());
        let allowed = usages(&["digital signature", "server auth"]);
        assert_eq!(Signer::KubeletServing.check(&named, &allowed), Ok(()));
        named.organizations.clear();
        assert!(Signer::KubeletServing.check(&named, &allowed).is_err());
        assert!(serving(&["server auth"]).is_err());
        let nameless = Signer::KubeletServing.check(&node(), &usages(&["server auth"]));
        assert_eq!(
            nameless.err().as_deref(),
            Some("DNS or IP subjectAltName is required")
        );
        let client = |list: &[&str]| Signer::ApiClient.check(&Request::default(), &usages(list));
        assert!(client(&["client auth"]).is_ok());
        assert_eq!(
            client(&["client auth", "server auth"]).err().as_deref(),
            Some("invalid usage for client certificate: server auth")
        );
        assert_eq!(
            client(&["digital signature"]).err().as_deref(),
            Some("missing required usage for client certificate: client auth")
        );
        let any = Signer::LegacyUnknown.check(&Request::default(), &usages(&["any"]));
        assert!(any.is_ok());
    }

    #[test]
    fn no_signer_makes_administrators() {
        let administrator = Request {
            organizations: vec!["developers".into(), ADMINISTRATORS.into()],
            ..Request::default()
        };
        for signer in [
            Signer::ApiClient,
            Signer::KubeletClient,
            Signer::KubeletServing,
            Signer::LegacyUnknown,
        ] {
            let refused = signer.check(&administrator, &usages(&["client auth"]));
            let problem = "the group system:masters is not allowed";
            assert_eq!(refused.err().as_deref(), Some(problem), "{signer:?}");
        }
    }

    #[test]
    fn a_request_of_another_user_is_not_one_of_the_node_for_itself() {
        assert!(is_of_itself(&node(), "system:node:one"));
        assert!(!is_of_itself(&node(), "system:node:two"));
    }

    #[test]
    fn signers_of_others_are_not_known() {
        for (name, signer) in [
            ("kube-apiserver-client", Signer::ApiClient),
            ("kube-apiserver-client-kubelet", Signer::KubeletClient),
            ("kubelet-serving", Signer::KubeletServing),
            ("legacy-unknown", Signer::LegacyUnknown),
        ] {
            let name = format!("kubernetes.io/{name}");
            assert_eq!(Signer::named(&name), Some(signer));
        }
        assert_eq!(Signer::named("example.com/signer"), None);
        assert_eq!(Signer::named("kubernetes.io/other"), None);
    }
}
