//! The choice of controllers, and the settings files.

use std::path::Path;

use expect_test::expect_file;
use setpoint_controller::{AnyHosted, runtime};
use setpoint_controller_manager::{CONTROLLERS, Choice, Controllers};
use setpoint_host::Settings as _;
use setpoint_host::settings::template;

/// Returns the name of a controller in the settings.
fn short(hosted: &dyn AnyHosted) -> &'static str {
    hosted.name().trim_end_matches("-controller")
}

fn naming(controllers: &[&str]) -> Choice {
    Choice {
        controllers: controllers.iter().map(|&name| name.to_owned()).collect(),
    }
}

#[test]
fn controllers_are_chosen_by_name_and_all_by_default() {
    let chosen = |choice: Choice| {
        let chosen = choice.chosen().into_iter();
        chosen.map(AnyHosted::name).collect::<Vec<_>>()
    };
    let all: Vec<_> = CONTROLLERS.iter().map(|hosted| hosted.name()).collect();
    assert_eq!(chosen(Choice::default()), all);
    let two = ["deployment-controller", "replicaset-controller"];
    assert_eq!(chosen(naming(&["deployment", "replicaset"])), two);
    assert_eq!(chosen(naming(&["replicaset"])), two[1..]);
    let mut others = all.clone();
    others.retain(|name| *name != two[0]);
    assert_eq!(chosen(naming(&["*", "-deployment"])), others);
    assert_eq!(chosen(naming(&["-deployment", "deployment"])), two[..1]);
}

#[test]
fn an_unknown_controller_is_refused_with_those_that_are_known() {
    assert_eq!(Choice::default().validate(), Ok(()));
    let refused = naming(&["deployment", "sorcery"]).validate();
    let known: Vec<_> = CONTROLLERS.iter().map(|hosted| short(*hosted)).collect();
    let known = known.join(", ");
    let expected = format!("there is no controller \"sorcery\"; known are {known}, and * for all");
    assert_eq!(refused, Err(expected));
    assert!(naming(&[]).validate().is_err());
    assert!(naming(&["-deployment"]).validate().is_err());
}

#[test]
fn the_settings_file_has_every_setting_with_its_default_and_names_every_controller() {
    let template = template::<runtime::Settings>("controller-manager", &Controllers);
    let known: Vec<_> = CONTROLLERS.iter().map(|hosted| short(*hosted)).collect();
    let text = template.replace("\n#", "");
    assert!(text.contains(&format!("The controllers: {}.", known.join(", "))));
    expect_file!["../../../deploy/config/controller-manager.toml"].assert_eq(&template);
}

#[test]
fn the_settings_files_of_controllers_have_every_setting_with_its_default() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/config");
    let mut found = Vec::new();
    for hosted in CONTROLLERS {
        let file = folder.join(format!("{}.toml", hosted.name()));
        if file.exists() {
            // The table of each that has settings of its own.
            let table = match short(*hosted) {
                "endpointslice" => "endpointslice",
                _ => "autoscaling",
            };
            expect_file![file].assert_eq(&hosted.template(table));
            found.push(short(*hosted));
        }
    }
    let expected = [
        "cronjob",
        "daemonset",
        "deployment",
        "disruption",
        "endpointslice",
        "horizontalpodautoscaler",
        "job",
        "replicaset",
        "statefulset",
    ];
    assert_eq!(found, expected);
}
