//! Types of messages that can nest without a bound, since decoders accept a limited depth.

use std::collections::HashMap;

use prost_reflect::{Kind as Type, MessageDescriptor};

/// The largest depth of a message that can be decoded, which is the limit of `prost`.
const DECODABLE: usize = 100;

/// Returns whether every message of a type can be decoded again: none can nest deeper than decoders accept.
pub(crate) fn is_bounded(message: &MessageDescriptor) -> bool {
    depth(message, &mut HashMap::new()).is_some_and(|depth| depth <= DECODABLE)
}

/// Returns how deep messages of a type can nest; `None` if they can contain themselves. `known` are those found before.
fn depth(message: &MessageDescriptor, known: &mut HashMap<String, Option<usize>>) -> Option<usize> {
    let name = message.full_name();
    if let Some(depth) = known.get(name) {
        return *depth;
    }
    // A type that is met again while it is visited contains itself.
    known.insert(name.to_owned(), None);
    let mut below = 0;
    for field in message.fields() {
        if let Type::Message(part) = field.kind() {
            below = below.max(depth(&part, known)?);
        }
    }
    known.insert(name.to_owned(), Some(below + 1));
    Some(below + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    /// Checks DG2.
    #[test]
    fn only_definitions_of_custom_kinds_can_nest_without_a_bound() {
        let unbounded = kinds().iter().filter(|kind| !is_bounded(&kind.message));
        let names: Vec<_> = unbounded.map(|kind| kind.kind.as_str()).collect();
        assert_eq!(names, ["CustomResourceDefinition"]);
    }

    #[test]
    fn a_message_is_one_deeper_than_its_deepest_part() {
        let depth_of = |name: &str| {
            let kind = kinds().by_resource(name).unwrap();
            depth(&kind.message, &mut HashMap::new())
        };
        // ConfigMap, metadata, managed fields, time.
        assert_eq!(depth_of("configmaps"), Some(4));
        assert!(depth_of("deployments.apps") > depth_of("pods"));
    }
}
