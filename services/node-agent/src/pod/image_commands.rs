//! The commands that processes run in place of images. Pure.

use std::collections::BTreeMap;

use setpoint_proto::core::{Container, PodSpec};
use setpoint_runtime::image_name;

/// The commands of images, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageCommands(BTreeMap<String, Vec<String>>);

impl ImageCommands {
    /// Parses entries `<image>=<command>`. A command is words between spaces, or a list of strings in JSON.
    ///
    /// # Errors
    /// With the first entry that is something else.
    pub fn parse(entries: &[String]) -> Result<Self, String> {
        let parse = |entry: &String| {
            let (image, command) = entry.split_once('=')?;
            let words = words(command)?;
            (is_image(image) && !words.is_empty()).then(|| (image.to_owned(), words))
        };
        let refused = |entry: &String| format!("{entry:?} must be an image, = and a command");
        let all = entries
            .iter()
            .map(|entry| parse(entry).ok_or_else(|| refused(entry)));
        Ok(Self(all.collect::<Result<_, _>>()?))
    }

    /// Gives containers without a command that of their image, as if it were the entrypoint.
    pub fn apply(&self, spec: &mut PodSpec) {
        let all = spec.init_containers.iter_mut().chain(&mut spec.containers);
        for container in all.filter(|container| container.command.is_empty()) {
            if let Some(command) = self.of(container) {
                container.command.clone_from(command);
            }
        }
    }

    /// Returns the command of a container's image: of its whole name, or of that without tag and digest.
    fn of(&self, container: &Container) -> Option<&Vec<String>> {
        let image = container.image.as_str();
        self.0.get(image).or_else(|| self.0.get(image_name(image)))
    }
}

/// Returns whether a text has the letters of an image, unlike the start of a list in JSON.
fn is_image(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "./:@_-".contains(letter);
    !text.is_empty() && text.chars().all(is_letter)
}

fn words(command: &str) -> Option<Vec<String>> {
    match command.trim().starts_with('[') {
        true => serde_json::from_str(command).ok(),
        false => Some(command.split_whitespace().map(str::to_owned).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(entries: &[&str]) -> Result<ImageCommands, String> {
        let entries: Vec<_> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        ImageCommands::parse(&entries)
    }

    fn command(image: &str, given: &[&str]) -> String {
        let commands = commands(&[
            "nginx=busybox httpd -f -p 80",
            "registry.example:5000/db:1.2=[\"sh\", \"-c\", \"sleep 1; exit\"]",
        ]);
        let mut spec = PodSpec {
            containers: vec![Container {
                image: image.to_owned(),
                command: given.iter().map(|word| (*word).to_owned()).collect(),
                ..Container::default()
            }],
            ..PodSpec::default()
        };
        commands.unwrap().apply(&mut spec);
        spec.containers[0].command.join("|")
    }

    #[test]
    fn a_container_without_a_command_gets_that_of_its_image() {
        for (image, expected) in [
            ("nginx", "busybox|httpd|-f|-p|80"),
            ("nginx:1.25", "busybox|httpd|-f|-p|80"),
            ("nginx@sha256:0", "busybox|httpd|-f|-p|80"),
            ("registry.example:5000/db:1.2", "sh|-c|sleep 1; exit"),
            ("registry.example:5000/db:1.3", ""),
            ("registry.example:5000/nginx", ""),
        ] {
            assert_eq!(command(image, &[]), expected, "{image}");
        }
        assert_eq!(command("nginx", &["own"]), "own");
    }

    #[test]
    fn an_entry_that_is_no_command_is_refused() {
        for entry in [
            "nginx",
            "=sleep",
            "nginx=",
            "nginx= ",
            "nginx=[1]",
            "nginx=[]",
            "[\"nginx=sleep\"]",
        ] {
            let error = commands(&[entry]).unwrap_err();
            assert!(error.starts_with(&format!("{entry:?} must be")), "{error}");
        }
    }
}
