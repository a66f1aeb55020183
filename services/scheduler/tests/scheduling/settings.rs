//! The settings file of the process.

use std::path::Path;
use std::process::{Command, Output};

fn started_with(name: &str, settings: &str) -> Output {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, settings).expect("the folder can be written");
    let mut scheduler = Command::new(env!("CARGO_BIN_EXE_scheduler"));
    scheduler.arg("--config").arg(&file);
    scheduler.output().expect("it starts")
}

/// All that a profile may set, and then a mistake: the process has read the rest.
#[test]
fn a_mistake_in_a_profile_ends_the_process_with_64_and_one_line_that_names_it() {
    let output = started_with(
        "profiles.toml",
        r#"
        [[profiles]]
        schedulerName = "default-scheduler"

        [[profiles]]
        schedulerName = "bin-packing"
        [profiles.plugins.multiPoint]
        disabled = [{ name = "ImageLocality" }]
        [profiles.plugins.filter]
        disabled = [{ name = "NodePorts" }]
        [profiles.plugins.postFilter]
        disabled = [{ name = "DefaultPreemption" }]
        [profiles.plugins.score]
        enabled = [{ name = "NodeResourcesFit", weight = 5 }]

        [[profiles.pluginConfig]]
        name = "NodeResourcesFit"
        [profiles.pluginConfig.args.scoringStrategy]
        type = "RequestedToCapacityRatio"
        resources = [{ name = "cpu", weight = 3 }, { name = "memory" }]
        requestedToCapacityRatio.shape = [{ utilization = 0, score = 0 }, { utilization = 100, score = 10 }]

        [[profiles.pluginConfig]]
        name = "PodTopologySpread"
        [profiles.pluginConfig.args]
        defaultingType = "List"
        defaultConstraints = [{ maxSkew = 1, topologyKey = "zone", whenUnsatisfiable = "ScheduleAnyway" }]

        [[profiles.pluginConfig]]
        name = "NodeAffinity"
        [[profiles.pluginConfig.args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms]]
        matchExpressions = [{ key = "pool", operator = "In", values = ["batch"] }]

        [[profiles.pluginConfig]]
        name = "InterPodAffinity"
        args = { hardPodAffinityWeight = 101 }
        "#,
    );
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        error.trim(),
        "scheduler: invalid settings: profiles[1].pluginConfig[3].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"
    );
}

#[test]
fn a_setting_that_profiles_do_not_have_ends_the_process_with_64() {
    let output = started_with("unknown.toml", "[[profiles]]\nscheduler = \"mine\"\n");
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("unknown field `scheduler`"), "{error}");
}
