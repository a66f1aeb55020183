//! Images are pulled from a registry, with the Events of the kubelet.

use setpoint_testkit::ImageRegistry;
use setpoint_tests::{Kubectl, eventually};

use crate::engine::{Engine, import};
use crate::events::wait_for_event;

fn apply(kubectl: &Kubectl, name: &str, image: &str, policy: &str) {
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: production}}\nspec:\n  containers:\n  - {{name: main, image: '{image}', imagePullPolicy: {policy}}}\n"
    );
    let applied = kubectl.with("apply", &pod);
    assert!(applied.success, "{}", applied.stderr);
}

fn runs(kubectl: &Kubectl, name: &str) {
    kubectl.ok(&format!(
        "wait -n production --for=condition=Ready pod/{name} --timeout=60s"
    ));
}

fn shows(kubectl: &Kubectl, name: &str, word: &str) {
    eventually(&format!("kubectl shows {word} for {name}"), || {
        let line = kubectl.run(&format!("get pod {name} -n production --no-headers"));
        let found = line.stdout.contains(word);
        found.then_some(()).ok_or(line.stdout + &line.stderr)
    });
}

/// Pushes an image to the registry and removes it from the engine.
fn image_in(registry: &ImageRegistry, engine: &Engine) -> String {
    let image = format!("{}:1", registry.name("pulled"));
    import(&image, &image);
    engine.docker(&format!("push {image}"));
    assert!(registry.forget(), "the engine forgets {image}");
    image
}

/// One test, because starting a cluster takes most of the time.
#[test]
fn images_are_pulled_according_to_the_pull_policy() {
    let Some(engine) = Engine::find() else { return };
    let Some(registry) = ImageRegistry::start() else {
        return;
    };
    let cluster = engine.cluster();
    let kubectl = cluster.kubectl();
    kubectl.ok("create namespace production");
    let image = &image_in(&registry, &engine);
    a_missing_image_with_policy_never_is_an_error(&kubectl, image);
    a_missing_image_with_policy_if_not_present_is_pulled(&kubectl, image);
    a_present_image_is_used_unless_the_policy_is_always(&kubectl, image);
    a_present_image_with_policy_always_is_pulled(&kubectl, image);
    an_image_that_is_not_in_the_registry_is_pulled_with_backoff(&kubectl, image);
}

fn a_missing_image_with_policy_never_is_an_error(kubectl: &Kubectl, image: &str) {
    apply(kubectl, "never", image, "Never");
    shows(kubectl, "never", "ErrImageNeverPull");
    let message =
        format!("kubelet Container image \"{image}\" is not present with pull policy of Never");
    wait_for_event(kubectl, "pod never", "Warning ErrImageNeverPull", &message);
    wait_for_event(
        kubectl,
        "pod never",
        "Warning Failed",
        "kubelet Error: ErrImageNeverPull",
    );
}

fn a_missing_image_with_policy_if_not_present_is_pulled(kubectl: &Kubectl, image: &str) {
    apply(kubectl, "pulls", image, "IfNotPresent");
    runs(kubectl, "pulls");
    let pulling = format!("kubelet Pulling image \"{image}\"");
    wait_for_event(kubectl, "pod pulls", "Normal Pulling", &pulling);
    let pulled = format!("kubelet Successfully pulled image \"{image}\" in ");
    wait_for_event(kubectl, "pod pulls", "Normal Pulled", &pulled);
    wait_for_event(
        kubectl,
        "pod pulls",
        "Normal Pulled",
        "including waiting). Image size: ",
    );
}

fn a_present_image_is_used_unless_the_policy_is_always(kubectl: &Kubectl, image: &str) {
    for (name, policy) in [("there", "IfNotPresent"), ("content", "Never")] {
        apply(kubectl, name, image, policy);
        runs(kubectl, name);
        let there = format!("kubelet Container image \"{image}\" already present on machine");
        wait_for_event(kubectl, &format!("pod {name}"), "Normal Pulled", &there);
    }
    // The Pod that could not start has its image now.
    runs(kubectl, "never");
}

fn a_present_image_with_policy_always_is_pulled(kubectl: &Kubectl, image: &str) {
    apply(kubectl, "always", image, "Always");
    runs(kubectl, "always");
    let pulled = format!("kubelet Successfully pulled image \"{image}\" in ");
    wait_for_event(kubectl, "pod always", "Normal Pulled", &pulled);
}

fn an_image_that_is_not_in_the_registry_is_pulled_with_backoff(kubectl: &Kubectl, image: &str) {
    let image = image.trim_end_matches(":1").to_owned() + ":2";
    apply(kubectl, "lacks", &image, "IfNotPresent");
    shows(kubectl, "lacks", "ImagePullBackOff");
    for (before, after) in [
        ("Normal Pulling", format!("Pulling image \"{image}\"")),
        (
            "Warning Failed",
            format!("Failed to pull image \"{image}\": "),
        ),
        ("Warning Failed", "Error: ErrImagePull".to_owned()),
        (
            "Normal BackOff",
            format!("Back-off pulling image \"{image}\""),
        ),
        ("Warning Failed", "Error: ImagePullBackOff".to_owned()),
    ] {
        wait_for_event(kubectl, "pod lacks", before, &format!("kubelet {after}"));
    }
}
