//! Fields whose descriptions end with "Required." are those that the gateway requires.

use super::paths::Path;
use super::{failures, objects, statements};

#[test]
fn fields_that_are_stated_as_required_are() {
    let stated = |text: &str| statements::is_required(text).then_some(());
    let failures = failures(stated, |path, ()| match is_required(path) {
        true => Ok(()),
        false => Err("an object without it is accepted".into()),
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn is_required(path: &Path) -> bool {
    let shown = path.shown();
    objects::examples(path.kind).iter().any(|example| {
        let object = path.without(example);
        let errors = match path.is_of_status() {
            true => objects::errors_of_update(path.kind, "status", example, &object),
            false => objects::errors_of_creation(path.kind, &object),
        };
        errors.iter().any(|(field, _)| field.starts_with(&shown))
    })
}
