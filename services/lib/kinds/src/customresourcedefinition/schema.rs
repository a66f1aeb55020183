//! The schema of a version.

use setpoint_proto::apiextensions::JsonSchemaProps;
use setpoint_schema::validate_definition;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// The most messages that a schema may nest. A map and its value count as two, as do the parts that are a schema or
/// something else, such as `items`. prost decodes 100, of which four are around the schema.
const DEEPEST: usize = 90;

/// Validates the schema of whole objects at `openAPIV3Schema`.
pub(super) fn validate_root(
    schema: &JsonSchemaProps,
    has_status: bool,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("openAPIV3Schema");
    if depth(schema) > DEEPEST {
        let detail = format!("must not nest more than {DEEPEST} levels");
        return errors.forbidden(&at, detail);
    }
    let json = serde_json::to_value(schema).unwrap_or_default();
    for violation in validate_definition(&json, &at.to_string(), has_status) {
        errors.violation(&violation);
    }
}

/// Returns the number of messages that are nested in the encoded schema.
fn depth(schema: &JsonSchemaProps) -> usize {
    let own = |schemas: &[JsonSchemaProps]| schemas.iter().map(|one| 1 + depth(one)).max();
    let items = schema.items.as_ref().map(|items| {
        let one = items.schema.as_deref().map(|one| 1 + depth(one));
        1 + one.max(own(&items.schemas)).unwrap_or_default()
    });
    let maps = [
        &schema.properties,
        &schema.pattern_properties,
        &schema.definitions,
    ];
    let in_maps = maps.into_iter().flat_map(|map| map.values());
    let in_maps = in_maps.map(|one| 2 + depth(one)).max();
    let dependencies = schema.dependencies.values();
    let dependencies = dependencies.map(|one| 3 + one.schema.as_ref().map_or(0, depth));
    let others = [&schema.additional_properties, &schema.additional_items];
    let others = others.into_iter().flatten();
    let others = others.map(|one| 2 + one.schema.as_deref().map_or(0, depth));
    let deepest = [
        items,
        in_maps,
        dependencies.max(),
        others.max(),
        own(&schema.all_of),
        own(&schema.one_of),
        own(&schema.any_of),
        schema.not.as_deref().map(|one| 1 + depth(one)),
    ];
    // A default or a rule is a message of one level.
    deepest.into_iter().flatten().max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use setpoint_proto::apiextensions::{
        CustomResourceDefinition, CustomResourceDefinitionVersion, CustomResourceValidation,
    };

    use super::*;

    /// Returns a schema of `count` schemas, one in another.
    fn nested(open: &str, close: &str, count: usize) -> JsonSchemaProps {
        let json = open.repeat(count) + r#"{"default":0}"# + &close.repeat(count);
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn a_schema_that_is_accepted_can_be_decoded() {
        for (open, close, levels) in [
            (r#"{"properties":{"a":"#, "}}", 2),
            (r#"{"items":"#, "}", 2),
            (r#"{"items":["#, "]}", 2),
            (r#"{"additionalProperties":"#, "}", 2),
            (r#"{"not":"#, "}", 1),
            (r#"{"allOf":["#, "]}", 1),
            (r#"{"dependencies":{"a":"#, "}}", 3),
        ] {
            let deepest = (DEEPEST - 1) / levels;
            let deepest = deepest.min(60);
            let schema = nested(open, close, deepest);
            assert_eq!(depth(&schema), deepest * levels + 1, "{open}");
            let mut definition = CustomResourceDefinition::default();
            definition.spec.versions = vec![CustomResourceDefinitionVersion {
                schema: Some(CustomResourceValidation {
                    open_api_v3_schema: Some(schema),
                }),
                ..Default::default()
            }];
            let encoded = definition.encode_to_vec();
            let decoded = CustomResourceDefinition::decode(&*encoded);
            assert_eq!(decoded.unwrap(), definition, "{open}");
        }
    }

    #[test]
    fn a_schema_that_is_nested_too_deeply_is_rejected() {
        let mut errors = FieldErrors::default();
        let schema = nested(r#"{"items":"#, "}", DEEPEST / 2);
        validate_root(&schema, false, &FieldPath::root("schema"), &mut errors);
        let expected = "schema.openAPIV3Schema: Forbidden: must not nest more than 90 levels";
        assert_eq!(errors.to_string(), expected);
    }
}
