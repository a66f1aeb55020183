//! The table of the tests that need permissions: the name of a test of the binary `e2e`, and below it, indented, the
//! permissions without which it fails.

use setpoint_tests::Permission;

const TEXT: &str = include_str!("rules.txt");

/// A permission, and the test that needs it.
pub struct Row {
    pub permission: Permission,
    pub test: &'static str,
}

/// Returns the rows of the table.
///
/// # Panics
/// If a permission cannot be read.
pub fn rows() -> Vec<Row> {
    let (mut rows, mut test) = (Vec::new(), "");
    for line in TEXT.lines() {
        match line.strip_prefix("  ") {
            Some(permission) => {
                let permission = permission.parse();
                let permission = permission.unwrap_or_else(|error| panic!("rules.txt: {error}"));
                rows.push(Row { permission, test });
            }
            None if line.is_empty() || line.starts_with('#') => {}
            None => test = line,
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_permission_of_a_service_has_a_row() {
        let rows = rows();
        let listed: BTreeSet<_> = rows.iter().map(|row| row.permission.to_string()).collect();
        let held: BTreeSet<_> = Permission::all().iter().map(ToString::to_string).collect();
        let missing: Vec<_> = held.difference(&listed).collect();
        let unknown: Vec<_> = listed.difference(&held).collect();
        assert!(missing.is_empty(), "without a test: {missing:#?}");
        assert!(unknown.is_empty(), "no service has them: {unknown:#?}");
        assert_eq!(listed.len(), rows.len(), "a permission is listed twice");
    }

    #[test]
    fn the_test_of_every_row_exists() {
        for row in rows() {
            let mut path: Vec<_> = row.test.split("::").collect();
            let function = path.pop().expect("a test has a name");
            let file = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("e2e")
                .join(path.join("/"))
                .with_extension("rs");
            let text = std::fs::read_to_string(&file);
            let text = text.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert!(text.contains(&format!("fn {function}()")), "{}", row.test);
        }
    }
}
