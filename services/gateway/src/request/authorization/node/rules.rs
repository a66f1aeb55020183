//! The rules of nodes, by resource, without other objects (upstream: `NodeAuthorizer.Authorize` of 1.36, with its
//! features that are on by default, `AuthorizeNodeWithSelectors` among them).

use std::borrow::Cow;

use setpoint_model::replicas::NODE_LEASES;
use setpoint_model::volume::NODE;

use super::relations::Related;
use super::{Attributes, Resource};

/// Whether a node may do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// It may.
    Allowed,
    /// It may not, with the reason, which may be empty.
    Denied(Cow<'static, str>),
    /// It may, if the object has to do with a Pod of the node, or is the node's own.
    Related(Related),
    /// It may, if the role of all nodes allows it.
    OfRole,
}

/// Returns the rule for a request of a node.
pub(super) fn of(node: &str, attributes: &Attributes) -> Rule {
    if node.is_empty() {
        return Rule::Denied("".into());
    }
    let Some(resource) = &attributes.resource else {
        return Rule::OfRole;
    };
    let request = Request {
        node,
        verb: &attributes.verb,
        resource,
        attributes,
    };
    match (resource.group.as_str(), resource.resource.as_str()) {
        ("", "secrets") => request.read(Related::Secret),
        ("", "configmaps") => request.read(Related::ConfigMap),
        ("", "persistentvolumeclaims") if resource.subresource == "status" => {
            request.update_status(Related::Claim)
        }
        ("", "persistentvolumeclaims") => request.get(Related::Claim),
        ("", "persistentvolumes") => request.of_volume(),
        ("resource.k8s.io", "resourceclaims") => request.get(Related::ResourceClaim),
        ("storage.k8s.io", "volumeattachments") => request.get(Related::Attachment),
        ("", "serviceaccounts") => request.of_account(),
        ("coordination.k8s.io", "leases") => request.of_lease(),
        ("storage.k8s.io", "csinodes") => request.of_csi_node(),
        ("resource.k8s.io", "resourceslices") => request.of_resource_slice(),
        ("", "nodes") => request.of_node(),
        ("", "pods") => request.of_pod(),
        // The feature PodCertificateRequest is off by default.
        ("certificates.k8s.io", "podcertificaterequests") => denied(""),
        _ => Rule::OfRole,
    }
}

fn denied(reason: &'static str) -> Rule {
    Rule::Denied(reason.into())
}

/// A request of a node for a resource.
struct Request<'a> {
    node: &'a str,
    verb: &'a str,
    resource: &'a Resource,
    attributes: &'a Attributes,
}

impl Request<'_> {
    /// Allows to read single objects of a namespace.
    fn read(&self, related: Related) -> Rule {
        if !["get", "list", "watch"].contains(&self.verb) {
            return denied("can only read resources of this type");
        }
        if !self.resource.subresource.is_empty() {
            return denied("cannot read subresource");
        }
        if self.resource.namespace.is_empty() {
            return denied("can only read namespaced object of this type");
        }
        self.related(related)
    }

    /// Allows to get single objects.
    fn get(&self, related: Related) -> Rule {
        if self.verb != "get" {
            return denied("can only get individual resources of this type");
        }
        if !self.resource.subresource.is_empty() {
            return denied("cannot get subresource");
        }
        self.related(related)
    }

    fn update_status(&self, related: Related) -> Rule {
        match self.verb {
            "update" | "patch" => self.related(related),
            _ => denied("can only get/update/patch this type"),
        }
    }

    /// Beyond upstream's rule, a node watches and releases the volumes that are directories of its own.
    fn of_volume(&self) -> Rule {
        match (self.resource.subresource.as_str(), self.verb) {
            ("", "list" | "watch") if self.attributes.labels.requires(NODE, self.node) => {
                Rule::Allowed
            }
            ("", "update" | "patch") => self.related(Related::Directory),
            _ => self.get(Related::Volume),
        }
    }

    fn related(&self, related: Related) -> Rule {
        match self.resource.name.as_str() {
            "" => denied("No Object name found"),
            _ => Rule::Related(related),
        }
    }

    fn of_account(&self) -> Rule {
        let part = self.resource.subresource.as_str();
        if self.verb == "get" && part.is_empty() {
            return self.read(Related::ServiceAccount);
        }
        if self.verb != "create" || self.resource.name.is_empty() {
            return denied("can only create tokens for individual service accounts");
        }
        match part {
            "token" => Rule::Related(Related::ServiceAccount),
            _ => denied("can only create token subresource of serviceaccount"),
        }
    }

    /// The name of an object that is created is not known yet: NodeRestriction compares it.
    fn of_lease(&self) -> Rule {
        match self.verb {
            "get" | "create" | "update" | "patch" | "delete" => {}
            _ => {
                return denied("can only get, create, update, patch, or delete a node lease");
            }
        }
        if self.resource.namespace != NODE_LEASES {
            return denied("can only access leases in the \"kube-node-lease\" system namespace");
        }
        match self.verb == "create" || self.resource.name == self.node {
            true => Rule::Allowed,
            false => denied("can only access node lease with the same name as the requesting node"),
        }
    }

    fn of_csi_node(&self) -> Rule {
        match self.verb {
            "get" | "create" | "update" | "patch" | "delete" => {}
            _ => return denied("can only get, create, update, patch, or delete a CSINode"),
        }
        if !self.resource.subresource.is_empty() {
            return denied("cannot authorize CSINode subresources");
        }
        match self.verb == "create" || self.resource.name == self.node {
            true => Rule::Allowed,
            false => denied("can only access CSINode with the same name as the requesting node"),
        }
    }

    fn of_resource_slice(&self) -> Rule {
        if !self.resource.subresource.is_empty() {
            return denied("cannot authorize ResourceSlice subresources");
        }
        match self.verb {
            "create" => Rule::Allowed,
            "get" | "update" | "patch" | "delete" => self.related(Related::ResourceSlice),
            "watch" | "list" | "deletecollection" if self.selects_own() => Rule::Allowed,
            "watch" | "list" | "deletecollection" => denied(
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => denied(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, \
                delete, deletecollection",
            ),
        }
    }

    fn of_node(&self) -> Rule {
        let (node, name) = (self.node, self.resource.name.as_str());
        match (self.resource.subresource.as_str(), self.verb) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Rule::Allowed,
            ("", "get" | "list" | "watch") if name == node => Rule::Allowed,
            ("", "get" | "list" | "watch") if name.is_empty() => Rule::Denied(
                format!("node '{node}' cannot read all nodes, only its own Node object").into(),
            ),
            ("", "get" | "list" | "watch") => Rule::Denied(
                format!("node '{node}' cannot read '{name}', only its own Node object").into(),
            ),
            _ => denied(""),
        }
    }

    fn of_pod(&self) -> Rule {
        match (self.resource.subresource.as_str(), self.verb) {
            ("", "get") => self.get(Related::Pod),
            ("", "list" | "watch") if self.selects_own() => Rule::Allowed,
            ("", "list" | "watch") if !self.resource.name.is_empty() => self.related(Related::Pod),
            ("", "list" | "watch") => {
                denied("can only list/watch pods with spec.nodeName field selector")
            }
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Rule::Allowed
            }
            _ => denied(""),
        }
    }

    /// Returns whether a field selector selects what is on the node only.
    fn selects_own(&self) -> bool {
        self.attributes.selects("spec.nodeName", self.node)
    }
}

#[cfg(test)]
mod tests;
