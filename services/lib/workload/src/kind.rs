//! The resources of kinds: built-in ones, and custom ones by their definitions.

use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::{Resource, for_each_stored_kind};

/// The group and kind that a CustomResourceDefinition defines. Its name is the plural with the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// The group.
    pub group: String,
    /// The kind.
    pub kind: String,
}

impl View for DefinitionView {
    type Object = CustomResourceDefinition;

    fn of(definition: CustomResourceDefinition) -> Self {
        let mut meta = Meta::of(&definition.metadata);
        meta.labels.clear();
        meta.annotations.clear();
        Self {
            meta,
            group: definition.spec.group,
            kind: definition.spec.names.kind,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

macro_rules! built_in {
    ($($message:path => $name:literal,)*) => {
        /// The apiVersion, kind and resource of each built-in kind.
        const BUILT_IN: &[(&str, &str, &str)] = &[
            $((<$message>::API_VERSION, <$message>::KIND, <$message>::RESOURCE),)*
        ];
    };
}
for_each_stored_kind!(built_in);

/// Returns the plural with the group of a kind. As upstream, the version does not matter.
///
/// # Errors
/// If the apiVersion is malformed, or there is no such kind; in upstream's words.
pub fn resource_of<'a>(
    api_version: &str,
    kind: &str,
    custom: impl IntoIterator<Item = &'a DefinitionView>,
) -> Result<String, String> {
    if api_version.matches('/').count() > 1 {
        return Err(format!("unexpected GroupVersion string: {api_version}"));
    }
    let group = group_of(api_version);
    let built_in = BUILT_IN
        .iter()
        .find(|(version, name, _)| group_of(version) == group && *name == kind);
    if let Some((.., resource)) = built_in {
        return Ok((*resource).to_owned());
    }
    let mut custom = custom.into_iter();
    let defined = custom.find(|definition| definition.group == group && definition.kind == kind);
    let name = defined.map(|definition| definition.meta.key.name.clone());
    name.ok_or_else(|| format!("no matches for kind {kind:?} in group {group:?}"))
}

fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_and_custom_kinds_are_found_by_group_and_kind_whatever_the_version() {
        let mut definition = CustomResourceDefinition::default();
        definition.metadata.name = "widgets.example.com".into();
        definition.spec.group = "example.com".into();
        definition.spec.names.kind = "Widget".into();
        let custom = [DefinitionView::of(definition)];
        let found = |api_version: &str, kind: &str| resource_of(api_version, kind, &custom);
        let known = [
            ("apps/v1", "Deployment", "deployments.apps"),
            ("apps/v1beta1", "StatefulSet", "statefulsets.apps"),
            ("v1", "ReplicationController", "replicationcontrollers"),
            ("", "ReplicationController", "replicationcontrollers"),
            ("example.com/v7", "Widget", "widgets.example.com"),
        ];
        for (api_version, kind, resource) in known {
            assert_eq!(found(api_version, kind).as_deref(), Ok(resource));
        }
        let unknown = found("example.com/v7", "Gadget").unwrap_err();
        assert_eq!(
            unknown,
            r#"no matches for kind "Gadget" in group "example.com""#
        );
        let malformed = found("a/b/c", "Widget").unwrap_err();
        assert_eq!(malformed, "unexpected GroupVersion string: a/b/c");
    }
}
