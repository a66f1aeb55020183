//! The defaults of the spec of a Pod.

use setpoint_model::{amounts, resource_name};
use setpoint_proto::core::{
    Container, DownwardApiVolumeFile, EnvVar, PodSpec, Probe, ResourceRequirements, Volume,
};

use super::{ephemeral, remote, resources};
use crate::validation::{claim, set_default};

/// The default mode of projected files.
const FILE_MODE: i32 = 0o644;

/// Sets the defaults of the spec of a Pod or a template.
pub fn fill_defaults(spec: &mut PodSpec) {
    set_default(&mut spec.restart_policy, "Always");
    set_default(&mut spec.dns_policy, "ClusterFirst");
    set_default(&mut spec.scheduler_name, "default-scheduler");
    spec.termination_grace_period_seconds.get_or_insert(30);
    spec.security_context.get_or_insert_default();
    fill_service_account(spec);
    spec.volumes.iter_mut().for_each(fill_volume);
    let containers = spec.init_containers.iter_mut().chain(&mut spec.containers);
    containers.for_each(fill_container);
    spec.ephemeral_containers
        .iter_mut()
        .for_each(ephemeral::fill_defaults);
    resources::canonicalise(&mut spec.overhead);
}

/// Sets the defaults of a Pod that templates do not get: a change of these rules would roll out every Deployment.
pub fn fill_pod_defaults(spec: &mut PodSpec) {
    spec.enable_service_links.get_or_insert(true);
    if let Some(grace) = &mut spec.termination_grace_period_seconds {
        // A negative grace period is an old form of "as soon as possible".
        *grace = if *grace < 0 { 1 } else { *grace };
    }
    for container in spec.init_containers.iter_mut().chain(&mut spec.containers) {
        default_requests_to_limits(&mut container.resources);
        let ports = container.ports.iter_mut();
        let unset = ports.filter(|port| spec.host_network && port.host_port == 0);
        unset.for_each(|port| port.host_port = port.container_port);
    }
    default_own_resources(spec);
}

/// Sets the resources of a Pod that has some of its own: the limits of huge pages are the sums of its containers', and
/// if it has limits, the requests of CPU and memory are those sums, and other requests the limits.
fn default_own_resources(spec: &mut PodSpec) {
    let requests = amounts::of_containers(spec, |resources| &resources.requests);
    let limits = amounts::of_containers(spec, |resources| &resources.limits);
    let some = |own: &&mut ResourceRequirements| !own.limits.is_empty() || !own.requests.is_empty();
    let Some(own) = spec.resources.as_mut().filter(some) else {
        return;
    };
    let is_compute = |name: &str| ["cpu", "memory"].contains(&name);
    let is_pages = |name: &str| name.starts_with(resource_name::HUGE_PAGES);
    for (name, sum) in amounts::to_list(&limits) {
        if is_pages(&name) && !own.requests.contains_key(&name) {
            own.limits.entry(name).or_insert(sum);
        }
    }
    if own.limits.is_empty() {
        return;
    }
    for (name, sum) in amounts::to_list(&requests) {
        if is_compute(&name) {
            own.requests.entry(name).or_insert(sum);
        }
    }
    for (name, limit) in &own.limits {
        if is_compute(name) || is_pages(name) {
            own.requests.entry(name.clone()).or_insert(limit.clone());
        }
    }
}

/// Sets the old and the new field of the service account to the same name.
fn fill_service_account(spec: &mut PodSpec) {
    if spec.service_account_name.is_empty() {
        spec.service_account_name.clone_from(&spec.service_account);
    }
    spec.service_account.clone_from(&spec.service_account_name);
}

fn default_requests_to_limits(resources: &mut ResourceRequirements) {
    for (name, limit) in &resources.limits {
        if !resources.requests.contains_key(name) {
            resources.requests.insert(name.clone(), limit.clone());
        }
    }
}

/// Sets the defaults of a container.
pub fn fill_container(container: &mut Container) {
    let pull = pull_policy(&container.image);
    set_default(&mut container.image_pull_policy, pull);
    set_default(
        &mut container.termination_message_path,
        "/dev/termination-log",
    );
    set_default(&mut container.termination_message_policy, "File");
    for port in &mut container.ports {
        set_default(&mut port.protocol, "TCP");
    }
    container.env.iter_mut().for_each(fill_env);
    resources::canonicalise(&mut container.resources.limits);
    resources::canonicalise(&mut container.resources.requests);
    let probes = [
        &mut container.liveness_probe,
        &mut container.readiness_probe,
        &mut container.startup_probe,
    ];
    probes.into_iter().flatten().for_each(fill_probe);
    if let Some(lifecycle) = &mut container.lifecycle {
        let hooks = [&mut lifecycle.post_start, &mut lifecycle.pre_stop];
        let requests = hooks
            .into_iter()
            .flatten()
            .filter_map(|hook| hook.http_get.as_mut());
        requests.for_each(fill_http);
    }
}

/// Returns the default pull policy: `Always` for an image without a tag or digest, or with the tag `latest`.
fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or_default();
    let latest = match name.split_once('@') {
        _ if image.is_empty() => false,
        Some(_) => false,
        None => name.split_once(':').is_none_or(|(_, tag)| tag == "latest"),
    };
    if latest { "Always" } else { "IfNotPresent" }
}

fn fill_env(variable: &mut EnvVar) {
    let source = variable.value_from.as_mut();
    if let Some(field) = source.and_then(|source| source.field_ref.as_mut()) {
        set_default(&mut field.api_version, "v1");
    }
}

fn fill_probe(probe: &mut Probe) {
    let set_default = |field: &mut i32, value| {
        if *field == 0 {
            *field = value;
        }
    };
    set_default(&mut probe.timeout_seconds, 1);
    set_default(&mut probe.period_seconds, 10);
    set_default(&mut probe.success_threshold, 1);
    set_default(&mut probe.failure_threshold, 3);
    if let Some(http) = &mut probe.handler.http_get {
        fill_http(http);
    }
    if let Some(grpc) = &mut probe.handler.grpc {
        grpc.service.get_or_insert_default();
    }
}

fn fill_http(http: &mut setpoint_proto::core::HttpGetAction) {
    set_default(&mut http.path, "/");
    set_default(&mut http.scheme, "HTTP");
}

fn fill_volume(volume: &mut Volume) {
    let source = &mut volume.volume_source;
    if *source == Default::default() {
        source.empty_dir = Some(Default::default());
    }
    if let Some(secret) = &mut source.secret {
        secret.default_mode.get_or_insert(FILE_MODE);
    }
    if let Some(config_map) = &mut source.config_map {
        config_map.default_mode.get_or_insert(FILE_MODE);
    }
    if let Some(downward) = &mut source.downward_api {
        downward.default_mode.get_or_insert(FILE_MODE);
        fill_files(&mut downward.items);
    }
    if let Some(host_path) = &mut source.host_path {
        host_path.r#type.get_or_insert_default();
    }
    if let Some(image) = &mut source.image {
        set_default(&mut image.pull_policy, pull_policy(&image.reference));
    }
    let claim = source.ephemeral.as_mut();
    if let Some(claim) = claim.and_then(|ephemeral| ephemeral.volume_claim_template.as_mut()) {
        claim::fill_defaults(&mut claim.spec);
    }
    remote::fill_defaults(source);
    if let Some(projected) = &mut source.projected {
        projected.default_mode.get_or_insert(FILE_MODE);
        for source in &mut projected.sources {
            if let Some(downward) = &mut source.downward_api {
                fill_files(&mut downward.items);
            }
            if let Some(token) = &mut source.service_account_token {
                token.expiration_seconds.get_or_insert(3600);
            }
        }
    }
}

fn fill_files(files: &mut [DownwardApiVolumeFile]) {
    let fields = files.iter_mut().filter_map(|file| file.field_ref.as_mut());
    fields.for_each(|field| set_default(&mut field.api_version, "v1"));
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{
        DownwardApiProjection, DownwardApiVolumeSource, ObjectFieldSelector, ProjectedVolumeSource,
        VolumeProjection,
    };
    use setpoint_proto::meta::Quantity;

    use super::*;

    fn spec(container: Container) -> PodSpec {
        let mut spec = PodSpec {
            containers: vec![container],
            ..Default::default()
        };
        fill_defaults(&mut spec);
        spec
    }

    #[test]
    fn only_images_with_a_version_default_to_if_not_present() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.25", "IfNotPresent"),
            ("host:5000/nginx", "Always"),
            ("host:5000/nginx:1", "IfNotPresent"),
            ("nginx@sha256:00", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }

    #[test]
    fn fields_in_files_are_those_of_version_v1() {
        let file = DownwardApiVolumeFile {
            field_ref: Some(ObjectFieldSelector::default()),
            ..Default::default()
        };
        let mut volumes = [Volume::default(), Volume::default()];
        volumes[0].volume_source.downward_api = Some(DownwardApiVolumeSource {
            items: vec![file.clone()],
            ..Default::default()
        });
        let source = VolumeProjection {
            downward_api: Some(DownwardApiProjection { items: vec![file] }),
            ..Default::default()
        };
        volumes[1].volume_source.projected = Some(ProjectedVolumeSource {
            sources: vec![source],
            ..Default::default()
        });
        volumes.iter_mut().for_each(fill_volume);
        let [plain, projected] = volumes.map(|volume| volume.volume_source);
        let plain = plain.downward_api.expect("it was set").items;
        let mut sources = projected.projected.expect("it was set").sources;
        let projected = sources.remove(0).downward_api.expect("it was set").items;
        for file in [&plain[0], &projected[0]] {
            let field = file.field_ref.as_ref().expect("it was set");
            assert_eq!(field.api_version, "v1");
        }
    }

    #[test]
    fn quantities_are_canonicalised() {
        let mut container = Container::default();
        container.resources.limits = [("cpu".into(), Quantity::new("0.5"))].into();
        container.resources.requests = [("memory".into(), Quantity::new("1024Mi"))].into();
        let resources = &spec(container).containers[0].resources;
        assert_eq!(resources.limits["cpu"].string, "500m");
        assert_eq!(resources.requests["memory"].string, "1Gi");
    }

    /// As upstream's `defaultPodRequests` and `defaultHugePagePodLimits`.
    #[test]
    fn the_requests_of_a_pod_with_limits_default_to_those_of_its_containers_or_to_the_limits() {
        let list = |amounts: &[(&str, &str)]| {
            let amounts = amounts.iter();
            let amounts =
                amounts.map(|(name, amount)| ((*name).to_owned(), Quantity::new(*amount)));
            amounts.collect::<std::collections::BTreeMap<_, _>>()
        };
        let container = Container {
            resources: ResourceRequirements {
                requests: list(&[("cpu", "250m"), ("ephemeral-storage", "1Gi")]),
                ..Default::default()
            },
            ..Default::default()
        };
        let mut spec = PodSpec {
            containers: vec![container.clone(), container],
            resources: Some(ResourceRequirements {
                limits: list(&[("cpu", "2"), ("memory", "1Gi")]),
                ..Default::default()
            }),
            ..Default::default()
        };
        let requested = |spec: &mut PodSpec| {
            fill_pod_defaults(spec);
            spec.resources.clone().unwrap().requests
        };
        let expected = list(&[("cpu", "500m"), ("memory", "1Gi")]);
        assert_eq!(requested(&mut spec), expected);
        spec.resources = Some(ResourceRequirements::default());
        assert_eq!(requested(&mut spec), list(&[]), "it has no limits");
        let pages = list(&[("hugepages-2Mi", "4Mi")]);
        spec.containers[0].resources.limits.clone_from(&pages);
        spec.resources = Some(ResourceRequirements {
            requests: list(&[("memory", "1Mi")]),
            ..Default::default()
        });
        let expected = list(&[("cpu", "500m"), ("hugepages-2Mi", "4Mi"), ("memory", "1Mi")]);
        assert_eq!(requested(&mut spec), expected);
        assert_eq!(spec.resources.unwrap().limits, pages);
    }

    #[test]
    fn requests_default_to_limits_in_pods_but_not_in_templates() {
        let mut container = Container::default();
        container.resources.limits = [("cpu".into(), Quantity::new("1"))].into();
        let mut spec = spec(container);
        assert!(spec.containers[0].resources.requests.is_empty());
        fill_pod_defaults(&mut spec);
        assert_eq!(spec.containers[0].resources.requests["cpu"].string, "1");
    }

    #[test]
    fn defaults_are_idempotent() {
        let container = Container {
            liveness_probe: Some(Probe::default()),
            ..Default::default()
        };
        let mut spec = spec(container);
        spec.volumes.push(Volume::default());
        fill_defaults(&mut spec);
        let once = spec.clone();
        fill_defaults(&mut spec);
        assert_eq!(spec, once);
        assert!(spec.volumes[0].volume_source.empty_dir.is_some());
        assert_eq!(
            spec.containers[0]
                .liveness_probe
                .as_ref()
                .unwrap()
                .period_seconds,
            10
        );
    }
}
