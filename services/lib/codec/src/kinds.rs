//! The table of all kinds, built once from the descriptors.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, DynamicMessage, ExtensionDescriptor};
use setpoint_proto::{DESCRIPTORS, Resource};

use crate::Kind;
use crate::object::CODECS;

/// The table of all kinds, indexed by their names.
#[derive(Debug)]
pub struct Kinds {
    all: Vec<Kind>,
    by_type_url: HashMap<String, usize>,
    by_resource: HashMap<String, usize>,
    by_plural: HashMap<String, Vec<usize>>,
    by_kind: HashMap<String, Vec<usize>>,
}

/// Returns the table of all kinds.
pub fn kinds() -> &'static Kinds {
    static KINDS: LazyLock<Kinds> = LazyLock::new(Kinds::read);
    &KINDS
}

/// Returns the kind of a stored message type.
pub fn kind_of<T: Resource>() -> &'static Kind {
    kinds()
        .by_resource(T::RESOURCE)
        .expect("every stored message has a kind")
}

/// Returns the descriptors of the `.proto` files.
pub(crate) fn pool() -> &'static DescriptorPool {
    static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
        DescriptorPool::decode(DESCRIPTORS).expect("the build has checked the descriptors")
    });
    &POOL
}

/// Returns the extension of this name.
pub(crate) fn extension(name: &str) -> ExtensionDescriptor {
    pool()
        .get_extension_by_name(name)
        .expect("options.proto declares it")
}

/// Returns Setpoint's options of a field or message, or the default if there are none.
pub(crate) fn options<T: prost::Message + Default>(
    options: &DynamicMessage,
    extension: &ExtensionDescriptor,
) -> T {
    let value = options.get_extension(extension);
    let message = value.as_message().expect("our extensions are messages");
    message
        .transcode_to()
        .expect("the same file described both types")
}

impl Kinds {
    fn read() -> Self {
        let extension = extension("setpoint.kind");
        let kinds = CODECS.iter().map(|&(name, codec)| {
            let message = pool()
                .get_message_by_name(name)
                .expect("the build names only kinds that it found");
            let rules = options(&message.options(), &extension);
            Kind::new(message, rules, codec)
        });
        Self::index(kinds.collect())
    }

    fn index(all: Vec<Kind>) -> Self {
        let mut by_plural = HashMap::<_, Vec<_>>::new();
        let mut by_kind = HashMap::<_, Vec<_>>::new();
        for (at, kind) in all.iter().enumerate() {
            by_plural.entry(kind.plural.clone()).or_default().push(at);
            by_kind.entry(kind.kind.clone()).or_default().push(at);
        }
        let mut by_resource = HashMap::new();
        let served = all.iter().enumerate().filter(|(_, kind)| kind.is_served());
        for (at, kind) in served {
            by_resource.insert(versioned(kind), at);
            match kind.is_stored() {
                true => by_resource.insert(kind.resource(), at),
                false => Some(*by_resource.entry(kind.resource()).or_insert(at)),
            };
        }
        let numbered = all.iter().enumerate();
        Self {
            by_type_url: numbered
                .map(|(at, kind)| (kind.type_url.clone(), at))
                .collect(),
            by_resource,
            by_plural,
            by_kind,
            all,
        }
    }

    /// Returns the stored kinds.
    pub fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.all.iter().filter(|kind| kind.is_stored())
    }

    /// Returns the kinds that requests can name: the stored ones, their other versions, and reviews.
    pub fn served(&self) -> impl Iterator<Item = &Kind> {
        self.all.iter().filter(|kind| kind.is_served())
    }

    /// Returns all kinds, including request bodies.
    pub fn with_bodies(&self) -> impl Iterator<Item = &Kind> {
        self.all.iter()
    }

    /// Returns a served kind by plural and group, for example `deployments.apps`. Of several versions it is the stored
    /// one; any is found as `horizontalpodautoscalers.v1.autoscaling`.
    pub fn by_resource(&self, resource: &str) -> Option<&Kind> {
        Some(&self.all[*self.by_resource.get(resource)?])
    }

    /// Returns a served kind by the parts of a URL.
    pub fn by_plural(&self, group: &str, version: &str, plural: &str) -> Option<&Kind> {
        let belongs = |kind: &&Kind| kind.group == group && kind.version == version;
        let mut of_name = self.by_plural.get(plural)?.iter().map(|&at| &self.all[at]);
        of_name.find(|kind| kind.is_served() && belongs(kind))
    }

    /// Returns a kind by apiVersion and kind. Bodies such as `DeleteOptions` are found under every apiVersion.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let belongs = |kind: &&Kind| kind.group == group && kind.version == version;
        let mut of_name = self.by_kind.get(kind)?.iter().map(|&at| &self.all[at]);
        of_name.find(|kind| belongs(kind) || kind.is_universal())
    }

    /// Returns a stored kind by any name that kubectl accepts: `deploy`, `deployment`, `Deployments`,
    /// `deployments.apps`.
    pub fn by_any_name(&self, name: &str) -> Option<&Kind> {
        let name = name.to_lowercase();
        self.iter().find(|kind| kind.is_called(&name))
    }

    /// Returns a kind by its type URL in an `Any`.
    pub fn by_type_url(&self, type_url: &str) -> Option<&Kind> {
        Some(&self.all[*self.by_type_url.get(type_url)?])
    }

    /// Returns a kind by the full name of its message.
    pub(crate) fn by_message(&self, name: &str) -> Option<&Kind> {
        self.all
            .iter()
            .find(|kind| kind.message.full_name() == name)
    }
}

/// Returns the plural with version and group, as kubectl accepts it.
fn versioned(kind: &Kind) -> String {
    format!("{}.{}.{}", kind.plural, kind.version, kind.group)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use setpoint_proto::apps::Deployment;
    use setpoint_proto::meta::DeleteOptions;

    use super::*;
    use crate::envelope;
    use crate::strict::unknown_fields;

    #[test]
    fn a_kind_is_found_by_each_of_its_names() {
        let kind = kind_of::<Deployment>();
        assert_eq!(kind.kind, Deployment::KIND);
        assert_eq!(kind.api_version(), Deployment::API_VERSION);
        assert_eq!(kind.type_url, Deployment::TYPE_URL);
        assert_eq!(kinds().by_plural("apps", "v1", "deployments"), Some(kind));
        assert_eq!(kinds().by_kind("apps/v1", "Deployment"), Some(kind));
        assert_eq!(kinds().by_type_url(Deployment::TYPE_URL), Some(kind));
        assert_eq!(kind.list_kind(), "DeploymentList");
        assert_eq!(kinds().by_plural("", "v1", "deployments"), None);
        assert_eq!(kinds().by_plural("apps", "v2", "deployments"), None);
        assert_eq!(kinds().by_kind("apps/v2", "Deployment"), None);
    }

    #[test]
    fn a_kind_is_found_by_every_name_that_kubectl_accepts() {
        let deployments = kinds().by_resource(Deployment::RESOURCE);
        for name in ["deploy", "Deployment", "deployments", "deployments.apps"] {
            assert_eq!(kinds().by_any_name(name), deployments, "{name}");
        }
        for name in ["", "gizmo", "deployments.batch", "scale"] {
            assert_eq!(kinds().by_any_name(name), None, "{name}");
        }
    }

    #[test]
    fn another_version_names_the_kind_that_is_stored() {
        let stored = kinds().by_resource("horizontalpodautoscalers.autoscaling");
        let other = kinds().by_resource("horizontalpodautoscalers.v1.autoscaling");
        let (stored, other) = (stored.unwrap(), other.unwrap());
        assert_eq!(
            (stored.version.as_str(), other.version.as_str()),
            ("v2", "v1")
        );
        assert_eq!((other.stored(), stored.stored()), (stored, stored));
        assert!(other.is_served() && !other.is_stored());
        let events = kinds().by_resource("events.events.k8s.io").unwrap();
        assert_eq!(events.stored().api_version(), "v1");
        assert!(kinds().served().count() > kinds().iter().count());
    }

    #[test]
    fn bodies_are_found_by_kind_and_are_not_stored() {
        let options = kinds().by_kind("v1", "DeleteOptions").unwrap();
        assert!(!options.is_stored());
        assert!(kinds().iter().all(Kind::is_stored));
        assert_eq!(kinds().by_resource(""), None);
        assert_eq!(kinds().by_plural("", "v1", ""), None);
        assert_eq!(kinds().by_kind("policy/v1", "DeleteOptions"), Some(options));
        assert!(kinds().by_kind("autoscaling/v1", "Scale").is_some());
        assert_eq!(kinds().by_kind("policy/v1", "Scale"), None);
        assert!(kinds().with_bodies().any(|kind| kind == options));
        assert!(kinds().iter().all(|kind| kind != options));
    }

    #[test]
    fn subresources_and_columns_are_read_from_the_options() {
        let pods = kinds().by_resource("pods").unwrap();
        assert!(
            pods.namespaced && pods.has_subresource("binding") && !pods.has_subresource("scale")
        );
        assert_eq!(pods.definition().short_names, ["po"]);
        let pods = pods.definition();
        let node = pods
            .columns
            .iter()
            .find(|column| column.name == "Node")
            .unwrap();
        assert_eq!(
            (node.path.as_deref(), node.priority),
            (Some(".spec.nodeName"), 1)
        );
        assert_eq!(node.r#type, "string");
        assert!(!kinds().by_resource("nodes").unwrap().namespaced);
    }

    #[test]
    fn an_object_can_be_downcast_to_its_type() {
        let kind = kinds().by_resource("pods").unwrap();
        let mut object = kind
            .from_json(br#"{"metadata":{"name":"a"},"spec":{"containers":null}}"#)
            .unwrap();
        object.meta_mut().uid = "u".to_owned();
        let copy = object.clone();
        let pod: &setpoint_proto::core::Pod = copy.downcast_ref().unwrap();
        assert_eq!(
            (pod.metadata.name.as_str(), pod.metadata.uid.as_str()),
            ("a", "u")
        );
        assert_eq!(object.kind(), kind);
        let pod: &mut setpoint_proto::core::Pod = object.downcast_mut().unwrap();
        pod.spec.node_name = "n".to_owned();
        let again = kind.decode(&object.encode()).unwrap();
        assert_eq!(again.to_json(), object.to_json());
        assert!(object.downcast_ref::<Deployment>().is_none());
        assert!(object.downcast_mut::<Deployment>().is_none());
    }

    #[test]
    fn kind_and_api_version_come_first_in_json() {
        let options = kinds()
            .by_kind("v1", "DeleteOptions")
            .unwrap()
            .from_json(b"{}")
            .unwrap();
        assert_eq!(
            options.to_json(),
            br#"{"kind":"DeleteOptions","apiVersion":"v1"}"#
        );
        assert_eq!(options.downcast_ref(), Some(&DeleteOptions::default()));
        assert_eq!(options.meta().name, "");
        let json = kinds()
            .by_resource("leases.coordination.k8s.io")
            .unwrap()
            .decode(b"")
            .unwrap()
            .to_json();
        assert_eq!(
            String::from_utf8(json).unwrap(),
            r#"{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{},"spec":{}}"#
        );
    }

    proptest! {
        #[test]
        fn decoding_any_bytes_does_not_panic(bytes: Vec<u8>, at: prop::sample::Index) {
            let document = br#"{"metadata":{"name":"a","labels":{"b":"c"}},"spec":{"containers":[{"name":"d"}]}}"#;
            let mut damaged = document.to_vec();
            damaged.splice(at.index(document.len()).., bytes.iter().copied());
            for kind in kinds().with_bodies() {
                for input in [bytes.as_slice(), &damaged] {
                    let _ = kind.decode(input);
                    let _ = kind.from_json(input);
                    let _ = unknown_fields(kind, input);
                }
            }
            let _ = envelope::read(&[envelope::MAGIC, &bytes].concat().into());
        }
    }

    #[test]
    fn the_last_of_duplicate_keys_applies() {
        let kind = kinds().by_resource("pods").unwrap();
        let pod = kind
            .from_json(br#"{"metadata":{"name":"a","name":"b"}}"#)
            .unwrap();
        assert_eq!(pod.meta().name, "b");
    }
}
