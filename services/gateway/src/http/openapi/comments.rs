//! The comments of the `.proto` files, which `kubectl explain` prints.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost_reflect::{FieldDescriptor, FileDescriptor, MessageDescriptor};
use setpoint_codec::kinds;

/// Comments by file and path of the element.
type Comments = HashMap<(String, Vec<i32>), String>;

static COMMENTS: LazyLock<Comments> = LazyLock::new(|| {
    let mut kinds = kinds().served();
    let pool = kinds.next().map(|kind| kind.message.parent_pool().clone());
    pool.iter()
        .flat_map(|pool| pool.files().collect::<Vec<_>>())
        .flat_map(of_file)
        .collect()
});

fn of_file(file: FileDescriptor) -> Vec<((String, Vec<i32>), String)> {
    let info = file.file_descriptor_proto().source_code_info.iter();
    let commented = info.flat_map(|info| &info.location).filter_map(|location| {
        let text = location.leading_comments.as_deref()?;
        let words: Vec<_> = text.split_whitespace().collect();
        Some((
            (file.name().to_owned(), location.path.clone()),
            words.join(" "),
        ))
    });
    commented.collect()
}

/// Returns the comment of a message.
pub(super) fn of_message(message: &MessageDescriptor) -> Option<&'static str> {
    of(&message.parent_file(), message.path())
}

/// Returns the comment of a field.
pub(in crate::http) fn of_field(field: &FieldDescriptor) -> Option<&'static str> {
    of(&field.parent_message().parent_file(), field.path())
}

fn of(file: &FileDescriptor, path: &[i32]) -> Option<&'static str> {
    COMMENTS
        .get(&(file.name().to_owned(), path.to_vec()))
        .map(String::as_str)
}
