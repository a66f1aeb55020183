//! The FlowSchema of a request: by its user and its target.

use setpoint_proto::flowcontrol::{
    FlowDistinguisherMethod, FlowSchemaSpec, NonResourcePolicyRule, PolicyRulesWithSubjects,
    ResourcePolicyRule, Subject,
};
use sha2::{Digest as _, Sha256};

/// Stands for every name in a rule.
const ALL: &str = "*";
/// The start of the names of the users that ServiceAccounts are.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The attributes by which a request is classified: its authenticated user, and its target. Nothing else that a client
/// claims counts.
#[derive(Clone, Copy, Debug)]
pub struct Digest<'a> {
    /// The name of the user.
    pub user: &'a str,
    /// The groups of the user.
    pub groups: &'a [String],
    /// A verb of the API or, for a path, the method in lower case.
    pub verb: &'a str,
    /// Its target.
    pub target: Target<'a>,
}

/// The target of a request.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A resource.
    Resource {
        /// Empty for the core group.
        group: &'a str,
        /// The plural.
        resource: &'a str,
        /// Empty for the object itself.
        subresource: &'a str,
        /// Empty for all, and for objects without one.
        namespace: &'a str,
    },
    /// The path of a request that names no resource.
    Path(&'a str),
}

/// Returns whether a request belongs to a schema.
pub fn matches(request: &Digest<'_>, schema: &FlowSchemaSpec) -> bool {
    schema.rules.iter().any(|rule| matches_rule(request, rule))
}

/// Returns what tells the flows of a schema apart.
pub fn distinguisher<'a>(
    request: &Digest<'a>,
    method: Option<&FlowDistinguisherMethod>,
) -> &'a str {
    match (method.map(|method| method.r#type.as_str()), request.target) {
        (Some("ByUser"), _) => request.user,
        (Some("ByNamespace"), Target::Resource { namespace, .. }) => namespace,
        _ => "",
    }
}

/// Returns the hash of a flow, by which its queues are dealt.
pub fn flow_hash(schema: &str, distinguisher: &str) -> u64 {
    let mut hash = Sha256::new();
    hash.update(schema);
    hash.update([0]);
    hash.update(distinguisher);
    let digest: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(bytes)
}

fn matches_rule(request: &Digest<'_>, rule: &PolicyRulesWithSubjects) -> bool {
    let is_subject = rule.subjects.iter().any(|one| is_subject(request, one));
    is_subject
        && match request.target {
            Target::Resource { .. } => {
                let mut rules = rule.resource_rules.iter();
                rules.any(|rule| matches_resource(request, rule))
            }
            Target::Path(path) => {
                let mut rules = rule.non_resource_rules.iter();
                rules.any(|rule| matches_path(request.verb, path, rule))
            }
        }
}

fn is_subject(request: &Digest<'_>, subject: &Subject) -> bool {
    match subject.kind.as_str() {
        "User" => (subject.user.as_ref())
            .is_some_and(|user| user.name == ALL || user.name == request.user),
        "Group" => subject
            .group
            .as_ref()
            .is_some_and(|group| group.name == ALL || request.groups.contains(&group.name)),
        "ServiceAccount" => subject.service_account.as_ref().is_some_and(|account| {
            let own = request.user.strip_prefix(SERVICE_ACCOUNT);
            let own = own.and_then(|own| own.split_once(':'));
            own.is_some_and(|(namespace, name)| {
                namespace == account.namespace && (account.name == ALL || account.name == name)
            })
        }),
        _ => false,
    }
}

fn matches_resource(request: &Digest<'_>, rule: &ResourcePolicyRule) -> bool {
    let Target::Resource {
        group,
        resource,
        subresource,
        namespace,
    } = request.target
    else {
        return false;
    };
    has(&rule.verbs, request.verb)
        && has_resource(&rule.resources, resource, subresource)
        && has(&rule.api_groups, group)
        && match namespace {
            "" => rule.cluster_scope,
            namespace => has(&rule.namespaces, namespace),
        }
}

fn matches_path(verb: &str, path: &str, rule: &NonResourcePolicyRule) -> bool {
    has(&rule.verbs, verb)
        && rule.non_resource_ur_ls.iter().any(|url| {
            let below = url.strip_suffix(ALL).unwrap_or(url);
            let below = below.strip_suffix('/').unwrap_or(below);
            url == ALL
                || url == path
                || path
                    .strip_prefix(below)
                    .is_some_and(|rest| rest.starts_with('/'))
        })
}

/// Returns whether a list has a name, or stands for all.
fn has(list: &[String], name: &str) -> bool {
    matches!(list, [all] if all == ALL) || list.iter().any(|one| one == name)
}

/// Returns whether a list has a resource or, as `<resource>/<subresource>`, a part of it.
fn has_resource(list: &[String], resource: &str, subresource: &str) -> bool {
    let is = |entry: &String| match subresource {
        "" => entry == resource,
        part => entry.split_once('/') == Some((resource, part)),
    };
    matches!(list, [all] if all == ALL) || list.iter().any(is)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::flowcontrol::{GroupSubject, ServiceAccountSubject, UserSubject};

    use super::*;

    const PODS: Target<'_> = Target::Resource {
        group: "",
        resource: "pods",
        subresource: "",
        namespace: "a",
    };

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    fn subject(kind: &str, name: &str) -> Subject {
        let mut subject = Subject {
            kind: kind.into(),
            ..Subject::default()
        };
        match kind {
            "User" => subject.user = Some(UserSubject { name: name.into() }),
            "Group" => subject.group = Some(GroupSubject { name: name.into() }),
            _ => {
                subject.service_account = Some(ServiceAccountSubject {
                    namespace: "kube-system".into(),
                    name: name.into(),
                });
            }
        }
        subject
    }

    fn schema(subject: Subject, rule: ResourcePolicyRule) -> FlowSchemaSpec {
        FlowSchemaSpec {
            rules: vec![PolicyRulesWithSubjects {
                subjects: vec![subject],
                resource_rules: vec![rule],
                non_resource_rules: vec![NonResourcePolicyRule {
                    verbs: texts(&["get"]),
                    non_resource_ur_ls: texts(&["/healthz", "/metrics/*"]),
                }],
            }],
            ..FlowSchemaSpec::default()
        }
    }

    fn everything() -> ResourcePolicyRule {
        ResourcePolicyRule {
            verbs: texts(&["*"]),
            api_groups: texts(&["*"]),
            resources: texts(&["*"]),
            cluster_scope: true,
            namespaces: texts(&["*"]),
        }
    }

    fn asked<'a>(user: &'a str, groups: &'a [String], target: Target<'a>) -> Digest<'a> {
        Digest {
            user,
            groups,
            verb: "get",
            target,
        }
    }

    /// Checks DG23: by who asks.
    #[test]
    fn a_subject_is_a_user_a_group_or_a_service_account() {
        let groups = texts(&["dev"]);
        let account = "system:serviceaccount:kube-system:dns";
        for (kind, name, user, expected) in [
            ("User", "jane", "jane", true),
            ("User", "jane", "joe", false),
            ("User", "*", "joe", true),
            ("Group", "dev", "jane", true),
            ("Group", "ops", "jane", false),
            ("Group", "*", "jane", true),
            ("ServiceAccount", "dns", account, true),
            ("ServiceAccount", "*", account, true),
            ("ServiceAccount", "other", account, false),
            (
                "ServiceAccount",
                "*",
                "system:serviceaccount:kube-system-2:dns",
                false,
            ),
            ("ServiceAccount", "*", "dns", false),
        ] {
            let schema = schema(subject(kind, name), everything());
            let found = matches(&asked(user, &groups, PODS), &schema);
            assert_eq!(found, expected, "{kind} {name} for {user}");
        }
    }

    #[test]
    fn a_resource_matches_by_verb_group_resource_and_scope() {
        let with = |change: fn(&mut ResourcePolicyRule)| {
            let mut rule = everything();
            change(&mut rule);
            schema(subject("Group", "*"), rule)
        };
        let pod = asked("jane", &[], PODS);
        assert!(matches(&pod, &with(|rule| rule.verbs = texts(&["get"]))));
        assert!(!matches(&pod, &with(|rule| rule.verbs = texts(&["list"]))));
        assert!(matches(&pod, &with(|rule| rule.api_groups = texts(&[""]))));
        assert!(!matches(
            &pod,
            &with(|rule| rule.api_groups = texts(&["apps"]))
        ));
        assert!(matches(
            &pod,
            &with(|rule| rule.resources = texts(&["pods"]))
        ));
        assert!(!matches(
            &pod,
            &with(|rule| rule.resources = texts(&["pods/status"]))
        ));
        assert!(matches(&pod, &with(|rule| rule.namespaces = texts(&["a"]))));
        assert!(!matches(
            &pod,
            &with(|rule| rule.namespaces = texts(&["b"]))
        ));
        let status = Target::Resource {
            group: "",
            resource: "pods",
            subresource: "status",
            namespace: "",
        };
        let status = asked("jane", &[], status);
        assert!(matches(
            &status,
            &with(|rule| rule.resources = texts(&["pods/status"]))
        ));
        assert!(!matches(
            &status,
            &with(|rule| rule.resources = texts(&["pods"]))
        ));
        assert!(!matches(&status, &with(|rule| rule.cluster_scope = false)));
    }

    #[test]
    fn a_path_matches_itself_and_below() {
        let schema = schema(subject("Group", "*"), everything());
        for (path, expected) in [
            ("/healthz", true),
            ("/healthz/etcd", true),
            ("/healthz2", false),
            ("/metrics/cadvisor", true),
            ("/metrics", false),
            ("/metricsx", false),
        ] {
            let found = matches(&asked("jane", &[], Target::Path(path)), &schema);
            assert_eq!(found, expected, "{path}");
        }
        let post = Digest {
            verb: "post",
            ..asked("jane", &[], Target::Path("/healthz"))
        };
        assert!(!matches(&post, &schema));
    }

    #[test]
    fn flows_are_told_apart_by_user_or_namespace() {
        let method = |name: &str| FlowDistinguisherMethod {
            r#type: name.into(),
        };
        let request = asked("jane", &[], PODS);
        assert_eq!(distinguisher(&request, Some(&method("ByUser"))), "jane");
        assert_eq!(distinguisher(&request, Some(&method("ByNamespace"))), "a");
        assert_eq!(distinguisher(&request, None), "");
        let path = asked("jane", &[], Target::Path("/"));
        assert_eq!(distinguisher(&path, Some(&method("ByNamespace"))), "");
        assert_ne!(flow_hash("a", "bc"), flow_hash("ab", "c"));
    }
}
