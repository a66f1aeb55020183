//! The comments of the `.proto` files, which `kubectl explain` prints.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost::Message as _;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};
use prost_reflect::{FieldDescriptor, FileDescriptor, MessageDescriptor};
use setpoint_proto::COMMENTED_DESCRIPTORS;

/// Comments by file and path of the element.
type Comments = HashMap<(String, Vec<i32>), String>;

static COMMENTS: LazyLock<Comments> = LazyLock::new(|| {
    let files = FileDescriptorSet::decode(COMMENTED_DESCRIPTORS);
    let files = files.expect("the build has encoded the descriptors").file;
    files.into_iter().flat_map(of_file).collect()
});

fn of_file(file: FileDescriptorProto) -> impl Iterator<Item = ((String, Vec<i32>), String)> {
    let locations = file.source_code_info.unwrap_or_default().location;
    let name = file.name.unwrap_or_default();
    locations.into_iter().filter_map(move |location| {
        let words: Vec<_> = location
            .leading_comments
            .as_deref()?
            .split_whitespace()
            .collect();
        Some(((name.clone(), location.path), words.join(" ")))
    })
}

/// Returns the comment of a message.
pub fn of_message(message: &MessageDescriptor) -> Option<&'static str> {
    of(&message.parent_file(), message.path())
}

/// Returns the comment of a field.
pub fn of_field(field: &FieldDescriptor) -> Option<&'static str> {
    of(&field.parent_message().parent_file(), field.path())
}

fn of(file: &FileDescriptor, path: &[i32]) -> Option<&'static str> {
    COMMENTS
        .get(&(file.name().to_owned(), path.to_vec()))
        .map(String::as_str)
}
